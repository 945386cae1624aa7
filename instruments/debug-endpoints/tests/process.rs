//! Effects of CPU profiles on their process: its memory, its signals, its threads.
#![cfg(all(target_os = "linux", feature = "cpu"))]
#![allow(unsafe_code)] // A handler of the test's own.

mod common;

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Answer, ask, ask_until, once_in_three, samples_of, status, wait_until};
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
    // Memory of tests before this one may have been given back.
    let kib = status("VmRSS:", 10).saturating_sub(before);
    assert!(
        kib < 20 * 1024,
        "{kib} KiB more, before anybody asked for a profile"
    );
    let busy = [Busy::begin("first"), Busy::begin("second")];
    // On a busy machine a thread may get no CPU for half a second, or hardly any.
    ask_until(admin, PROFILE, |first| {
        assert_eq!(first.status, 200, "{}", first.text());
        let named = samples_of(first, "process::computes_here");
        let has_both = ["first;", "second;"].map(|thread| samples_of(first, thread) > 0);
        let has_callers = first.text().contains("std::thread");
        has_both == [true, true] && named * 2 > samples_of(first, "") && has_callers
    });
    let threads = status("Threads:", 10);
    let resident = status("VmRSS:", 10);
    for _ in 0..5 {
        assert_eq!(ask(admin, PROFILE).status, 200);
    }
    wait_until("no thread is left", || status("Threads:", 10) <= threads);
    let more = status("VmRSS:", 10).saturating_sub(resident);
    assert!(more < 20 * 1024, "{more} KiB more after five profiles");
    // A signal that is handled or ignored would be inherited by programs that the service starts.
    wait_until("no handler is left", || !is_handled(libc::SIGPROF));
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

/// Takes a profile of some seconds, and runs `meanwhile` once it handles its signal. A machine that stands still may let a
/// profile pass before.
fn profile_with<Made>(
    admin: SocketAddr,
    seconds: u32,
    meanwhile: impl Fn() -> Made,
) -> (Answer, Made) {
    for _ in 0..3 {
        wait_until("no handler is left", || !is_handled(libc::SIGPROF));
        let path = format!("/debug/pprof/profile?seconds={seconds}&format=folded");
        let profile = std::thread::spawn(move || ask(admin, &path));
        while !is_handled(libc::SIGPROF) && !profile.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !profile.is_finished() {
            let made = meanwhile();
            return (profile.join().expect("answered"), made);
        }
    }
    panic!("no profile begins");
}

#[test]
fn a_profiler_that_the_service_begins_during_a_profile_outlives_it() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    once_in_three(|| {
        let (profile, own) = profile_with(admin, 2, || {
            OwnProfiler::begin(libc::SIGPROF, libc::ITIMER_PROF.unsigned_abs())
        });
        assert_eq!(profile.status, 200, "{}", profile.text());
        assert!(own.samples(), "its handler is gone");
        drop(own);
        let is_told = profile.head.contains("began its own profiler");
        (is_told, profile.head)
    });
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
        once_in_three(|| {
            let (profile, has_samples) = profile_with(admin, 1, || own.samples());
            assert!(has_samples, "no signal {signal} during a profile");
            assert_eq!(profile.status, 200, "{}", profile.text());
            let samples = samples_of(&profile, "process::computes_here");
            (samples > 0, profile)
        });
        assert!(own.samples(), "no signal {signal} after a profile");
    }
}

/// A thread as C libraries start them: it computes until this is dropped.
struct InC {
    thread: libc::pthread_t,
    orders: Box<Orders>,
}

#[derive(Default)]
struct Orders {
    name: &'static [u8],
    /// Signals that it blocks.
    blocks: &'static [libc::c_int],
    /// Size of its stack, and whether it uses 8 KiB of it.
    stack: usize,
    uses_stack: bool,
    /// Size of an alternate stack of its own; 0 for none.
    alternate: usize,
    is_over: AtomicBool,
}

impl InC {
    fn begin(orders: Orders) -> Self {
        let orders = Box::new(orders);
        let given = std::ptr::from_ref(&*orders).cast_mut().cast();
        // SAFETY: the attributes and the number are written before they are read. The thread ends before its orders do.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_attr_init(&raw mut attributes);
            libc::pthread_attr_setstacksize(&raw mut attributes, orders.stack);
            let mut thread = 0;
            let failed = libc::pthread_create(&raw mut thread, &raw const attributes, in_c, given);
            assert_eq!(failed, 0, "no thread");
            Self { thread, orders }
        }
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        self.orders.is_over.store(true, Ordering::Relaxed);
        // SAFETY: it is joined once.
        unsafe { libc::pthread_join(self.thread, std::ptr::null_mut()) };
    }
}

extern "C" fn in_c(orders: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: they outlive this thread. The calls take what they are given, and concern this thread alone.
    let orders = unsafe {
        let orders = &*orders.cast::<Orders>();
        libc::prctl(libc::PR_SET_NAME, orders.name.as_ptr());
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in orders.blocks {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        if orders.alternate > 0 {
            let alternate = libc::stack_t {
                ss_sp: libc::malloc(orders.alternate),
                ss_flags: 0,
                ss_size: orders.alternate,
            };
            let failed = libc::sigaltstack(&raw const alternate, std::ptr::null_mut());
            assert_eq!(failed, 0, "no alternate stack");
        }
        orders
    };
    if orders.uses_stack {
        burns_deep_down(&orders.is_over);
    } else {
        burns_in_c(&orders.is_over);
    }
    std::ptr::null_mut()
}

#[inline(never)]
fn burns_deep_down(is_over: &AtomicBool) {
    let used = std::mem::MaybeUninit::<[u8; 8192]>::uninit();
    black_box(used.as_ptr());
    burns_in_c(is_over);
    black_box(used.as_ptr());
}

#[inline(never)]
fn burns_in_c(is_over: &AtomicBool) {
    let mut sum = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        sum = black_box(sum).wrapping_mul(31).wrapping_add(7);
    }
}

/// Returns a profile of two seconds with idle time, in which this thread computes.
fn profile_of(orders: Orders) -> Answer {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let thread = InC::begin(orders);
    let profile = ask(
        admin,
        "/debug/pprof/profile?seconds=2&format=folded&idle=true",
    );
    drop(thread);
    assert_eq!(profile.status, 200, "{}", profile.text());
    profile
}

/// Asserts that a thread is in a profile for most of the CPU time that is not idle, and returns the head of the answer. The
/// thread may get no CPU for the two seconds.
fn seen(profile: impl Fn() -> Answer, thread: &str) -> String {
    let seen = once_in_three(|| {
        let profile = profile();
        let of_thread = samples_of(&profile, thread);
        let busy = samples_of(&profile, "") - samples_of(&profile, "[idle]");
        let named = samples_of(&profile, "process::burns_in_c");
        (of_thread * 2 > busy && named * 2 > of_thread, profile)
    });
    seen.head
}

const LARGE: usize = 1 << 20;
const STOPPED: &str = "were stopped for each sample instead";

#[test]
fn a_thread_whose_small_stack_is_half_full_survives_a_profile_and_is_in_it() {
    let small = |stack| {
        profile_of(Orders {
            name: b"little\0",
            stack,
            uses_stack: true,
            ..Orders::default()
        })
    };
    let head = seen(|| small(16 << 10), "little;");
    assert!(
        head.contains(STOPPED) && head.contains("instead: little."),
        "{head}"
    );
    // One with room gets the signal.
    let head = seen(|| small(LARGE), "little;");
    assert!(!head.contains(STOPPED), "{head}");
}

#[test]
fn a_thread_with_a_small_alternate_stack_survives_a_profile_and_is_in_it() {
    let with = |alternate| {
        profile_of(Orders {
            name: b"alternate\0",
            stack: LARGE,
            alternate,
            ..Orders::default()
        })
    };
    let head = seen(|| with(4096), "alternate;");
    assert!(head.contains("instead: alternate."), "{head}");
    let head = seen(|| with(64 << 10), "alternate;");
    assert!(!head.contains(STOPPED), "{head}");
}

#[test]
fn a_thread_that_blocks_the_signal_is_in_the_profile() {
    const ALL: &[libc::c_int] = &[
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGCHLD,
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGPIPE,
    ];
    for (blocks, is_stopped) in [
        (ALL, true),
        (&[libc::SIGPROF], true),
        (&[libc::SIGALRM], false),
    ] {
        let profile = || {
            profile_of(Orders {
                name: "de\u{1b}äf\0".as_bytes(),
                stack: LARGE,
                blocks,
                ..Orders::default()
            })
        };
        let head = seen(profile, "de\\u001bäf;");
        assert_eq!(head.contains("instead: de\\u001bäf."), is_stopped, "{head}");
    }
    // No signal is left that would end the service now.
    assert_eq!(status("ShdPnd:", 16), 0);
}

#[test]
fn names_of_threads_move_nothing_in_a_terminal() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let busy = Busy::begin("\u{1b}[2J\u{202e}gone");
    for path in [PROFILE, "/debug/threads?seconds=0.2&idle=true"] {
        ask_until(admin, path, |answer| {
            let text = answer.text();
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{path}: {text:?}");
            text.contains("\\u001b[2J\\u202egone")
        });
    }
    drop(busy);
}

#[test]
fn threads_whose_names_are_no_text_are_shown() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    // The system keeps 15 bytes, so it cuts this name inside its eighth letter.
    let cut = Busy::begin("работники");
    let other = InC::begin(Orders {
        name: b"tail\xff\0",
        stack: LARGE,
        ..Orders::default()
    });
    for path in [
        "/debug/pprof/profile?seconds=1&format=folded",
        "/debug/threads?seconds=0.5",
    ] {
        ask_until(admin, path, |answer| {
            let text = answer.text();
            text.contains("работни\u{fffd};") && text.contains("tail\u{fffd};")
        });
    }
    drop((cut, other));
}

#[test]
fn threads_that_begin_during_a_profile_are_in_it() {
    let _alone = ALONE.lock();
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    once_in_three(|| {
        let (profile, late) = profile_with(admin, 3, || Busy::begin("late"));
        drop(late);
        (samples_of(&profile, "late;") > 0, profile)
    });
}
