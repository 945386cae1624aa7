//! Effects of CPU profiles on their process: its memory, its signals, its threads.
#![cfg(all(target_os = "linux", feature = "cpu"))]
#![allow(unsafe_code)] // A handler of the test's own.

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Answer, ask, status};
use debug_endpoints::DebugEndpoints;

/// Lock for the tests, which look at the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const PROFILE: &str = "/debug/pprof/profile?seconds=0.5&format=folded";

/// Computes for this much CPU time, in a function that a profile names.
#[inline(never)]
fn computes_here(cpu_time: Duration) {
    let began = cpu_time::ThreadTime::now();
    while began.elapsed() < cpu_time {
        black_box((0..20_000).map(black_box).sum::<u64>());
    }
}

/// A thread that computes until this is dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn begin(name: &str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let computes = move || {
            while !over.load(Ordering::Relaxed) {
                computes_here(Duration::from_millis(1));
            }
        };
        thread.spawn(computes).expect("started");
        Self(is_over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn samples_of(profile: &Answer, part: &str) -> u64 {
    let mut samples = 0;
    for line in profile.text().lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a line");
        if stack.contains(part) {
            samples += count.parse::<u64>().expect("a number");
        }
    }
    samples
}

fn is_handled(signal: libc::c_int) -> bool {
    status("SigCgt:", 16) >> (signal - 1) & 1 == 1
}

#[test]
fn a_profile_has_the_threads_that_compute_and_leaves_memory_signals_and_threads_as_they_were() {
    let _alone = ALONE.lock();
    let before = status("VmRSS:", 10);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let debug = runtime.block_on(async { DebugEndpoints::new() });
    let admin = debug.listen("127.0.0.1:0").expect("a free port");
    assert_eq!(ask(admin, "/debug/metrics").status, 200);
    let kib = status("VmRSS:", 10) - before;
    assert!(
        kib < 20 * 1024,
        "{kib} KiB more, before anybody asked for a profile"
    );
    let busy = [Busy::begin("first"), Busy::begin("second")];
    let first = ask(admin, PROFILE);
    assert_eq!(first.status, 200, "{}", first.text());
    for thread in ["first;", "second;"] {
        let samples = samples_of(&first, thread);
        assert!(samples > 0, "no sample of {thread} in {}", first.text());
    }
    let named = samples_of(&first, "process::computes_here");
    let all = samples_of(&first, "");
    assert!(
        named * 2 > all,
        "{named} of {all}: {}{}",
        first.head,
        first.text()
    );
    assert!(
        first.text().contains("std::thread"),
        "callers are missing: {}",
        first.text()
    );
    let threads = status("Threads:", 10);
    let resident = status("VmRSS:", 10);
    for _ in 0..5 {
        assert_eq!(ask(admin, PROFILE).status, 200);
    }
    assert_eq!(status("Threads:", 10), threads);
    let more = status("VmRSS:", 10).saturating_sub(resident);
    assert!(more < 20 * 1024, "{more} KiB more after five profiles");
    // A signal that is handled or ignored would be inherited by programs that the service starts.
    assert!(!is_handled(libc::SIGPROF));
    assert_eq!(status("SigIgn:", 16) >> (libc::SIGPROF - 1) & 1, 0);
    drop(busy);
}

#[test]
fn a_profile_keeps_off_the_handler_of_another_profiler() {
    extern "C" fn of_another(_: libc::c_int) {}

    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let handler = of_another as extern "C" fn(libc::c_int);
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGPROF, handler as libc::sighandler_t) };
    let refused = ask(admin, PROFILE);
    assert_eq!(refused.status, 503);
    assert!(
        refused.text().contains("another profiler"),
        "{}",
        refused.text()
    );
    assert!(is_handled(libc::SIGPROF), "the handler is in force again");
    // SAFETY: it has no conditions.
    unsafe { libc::signal(libc::SIGPROF, libc::SIG_DFL) };
    assert_eq!(ask(admin, PROFILE).status, 200);
}

/// Signals that the handler of a test's own profiler has had.
static HITS: AtomicU32 = AtomicU32::new(0);

/// A profiler of the service's own, as pprof-rs is one: a handler and a timer.
struct OwnProfiler {
    signal: libc::c_int,
    timer: libc::c_uint,
}

impl OwnProfiler {
    fn begin(signal: libc::c_int, timer: libc::c_uint) -> Self {
        extern "C" fn counts(_: libc::c_int) {
            HITS.fetch_add(1, Ordering::Relaxed);
        }
        HITS.store(0, Ordering::Relaxed);
        let handler = counts as extern "C" fn(libc::c_int);
        // SAFETY: the handler only counts.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        let profiler = Self { signal, timer };
        profiler.fires_every(2_000);
        profiler
    }

    fn fires_every(&self, microseconds: libc::suseconds_t) {
        let time = libc::timeval {
            tv_sec: 0,
            tv_usec: microseconds,
        };
        let schedule = libc::itimerval {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: it reads the schedule, and writes nothing.
        unsafe { libc::syscall(libc::SYS_setitimer, self.timer, &raw const schedule, 0) };
    }

    /// Returns whether signals still arrive while this thread computes.
    fn samples(&self) -> bool {
        let before = HITS.load(Ordering::Relaxed);
        computes_here(Duration::from_millis(200));
        is_handled(self.signal) && HITS.load(Ordering::Relaxed) > before
    }
}

impl Drop for OwnProfiler {
    fn drop(&mut self) {
        self.fires_every(0);
        // SAFETY: it has no conditions. Ignoring the signal discards one that is still pending.
        unsafe {
            libc::signal(self.signal, libc::SIG_IGN);
            libc::signal(self.signal, libc::SIG_DFL);
        }
    }
}

/// Waits until a profile of these endpoints handles its signal.
fn wait_for_a_profile() {
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_handled(libc::SIGPROF) {
        assert!(Instant::now() < patience, "no profile begins");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_profiler_that_the_service_begins_during_a_profile_outlives_it() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let profile =
        std::thread::spawn(move || ask(admin, "/debug/pprof/profile?seconds=2&format=folded"));
    wait_for_a_profile();
    let own = OwnProfiler::begin(libc::SIGPROF, libc::ITIMER_PROF.unsigned_abs());
    let profile = profile.join().expect("answered");
    assert_eq!(profile.status, 200, "{}", profile.text());
    assert!(
        profile.head.contains("began a profiler of its own"),
        "{}",
        profile.head
    );
    assert!(own.samples(), "its handler is gone");
    drop(own);
    assert_eq!(ask(admin, PROFILE).status, 200);
}

#[test]
fn profilers_by_other_signals_sample_during_a_profile_and_after_it() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    for (signal, timer) in [
        (libc::SIGVTALRM, libc::ITIMER_VIRTUAL),
        (libc::SIGALRM, libc::ITIMER_REAL),
    ] {
        let own = OwnProfiler::begin(signal, timer.unsigned_abs());
        let profile = std::thread::spawn(move || ask(admin, PROFILE));
        wait_for_a_profile();
        assert!(own.samples(), "no signal {signal} during a profile");
        let profile = profile.join().expect("answered");
        assert_eq!(profile.status, 200, "{}", profile.text());
        assert!(samples_of(&profile, "process::computes_here") > 0);
        assert!(own.samples(), "no signal {signal} after a profile");
    }
}

#[test]
fn names_of_threads_move_nothing_in_a_terminal() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let busy = Busy::begin("\u{1b}[2J\u{202e}gone");
    for path in [PROFILE, "/debug/threads?seconds=0.2&idle=true"] {
        let text = ask(admin, path).text();
        assert!(text.contains("\\u001b[2J\\u202egone"), "{path}: {text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{path}: {text:?}");
    }
    drop(busy);
}

#[test]
fn threads_that_begin_during_a_profile_are_in_it() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let profile =
        std::thread::spawn(move || ask(admin, "/debug/pprof/profile?seconds=3&format=folded"));
    wait_for_a_profile();
    let late = Busy::begin("late");
    let profile = profile.join().expect("answered");
    drop(late);
    assert!(samples_of(&profile, "late;") > 0, "{}", profile.text());
}
