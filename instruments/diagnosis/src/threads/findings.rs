//! What a profile of threads says of requests that wait.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use ecosystem::{PartMeaning, Role};

use super::profile::{Frame, Stack, State, Thread, ThreadProfile};
use crate::finding::Finding;

/// A thread that runs requests and is blocked for less of the time holds up few: runtimes have locks of their own.
const BLOCKED: f64 = 0.2;
/// Threads that compute for less of the time have time for whoever comes.
const BUSY: f64 = 0.5;
/// The same if one of them did not yield for so long, in seconds.
const HELD: f64 = 0.01;
const BUSY_WHILE_HELD: f64 = 0.1;
/// A place with less of the computing is one among many.
const MOST: f64 = 0.4;
/// One with less is none of the places where most of it is.
const MUCH: f64 = 0.1;
/// At most so many places are told.
const MOST_PLACES: usize = 3;
/// What is seen less often may be chance.
const FEWEST: u64 = 5;
/// So many threads asleep on average are a queue.
const QUEUE: f64 = 1.0;
/// Who is past a lock in fewer of the moments need not be who holds others up.
const OFTEN: f64 = 0.2;
/// A thread that is blocked for more of the time has not gone on meanwhile.
const ALWAYS: f64 = 0.99;

/// The call in which threads wait for each other.
const FUTEX: &str = "futex";
impl ThreadProfile {
    /// Who of those that run requests is blocked in a call, what they compute, and which threads queue for a lock. `held`
    /// is how long a thread that runs requests did not yield, in seconds.
    pub fn findings(&self, held: f64) -> Vec<Finding> {
        let of_workers = [self.blocked(), self.computing_worker(held)];
        let others = self.threads.iter().filter(|thread| !thread.is_runtime);
        let others = others.flat_map(|thread| &thread.stacks);
        let queues = [
            of_locks(others, self.stacks(), self.moments),
            of_sqlite(self.stacks(), self.moments),
        ];
        of_workers.into_iter().chain(queues).flatten().collect()
    }

    fn stacks(&self) -> impl Iterator<Item = &Stack> {
        self.threads.iter().flat_map(|thread| &thread.stacks)
    }

    /// Those that drive tasks.
    fn drive(&self) -> Vec<&Thread> {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.is_runtime).collect()
    }

    /// Those of them that began requests, or all if none is known to. A runtime of its own is where computing belongs.
    fn run_requests(&self) -> Vec<&Thread> {
        let mut threads = self.drive();
        if threads.iter().any(|thread| thread.began_requests) {
            threads.retain(|thread| thread.began_requests);
        }
        threads
    }

    fn blocked(&self) -> Option<Finding> {
        let drive = self.drive();
        let worst = worst(&drive);
        let found = most_frequent(in_state(&drive, State::Blocked))?.0;
        if worst < BLOCKED || found.samples < FEWEST {
            return None;
        }
        let blocked = drive.iter().map(|thread| blocked_share(thread));
        let blocked: Vec<f64> = blocked.filter(|share| *share >= BLOCKED).collect();
        let stack = found.most;
        let past = past(stack, self.stacks(), self.moments);
        // Of a lock in use, somebody is past it now and then.
        let is_stuck = past.is_none()
            && !inner_passes(stack, PartMeaning::Channel)
            && blocked.len() * 2 >= drive.len()
            && blocked.iter().all(|share| *share >= ALWAYS);
        let says = format!(
            "{} of {} threads that run requests sleep in a call, up to {:.0} % of the time: {} {}{}. All that such a \
             thread has in hand waits meanwhile. {}",
            blocked.len(),
            drive.len(),
            worst * 100.0,
            found.text().trim_matches(['(', ')']),
            self.at(stack),
            past.as_ref().map_or_else(String::new, |past| format!(
                "; whoever is past it {}",
                past.does()
            )),
            advice(stack, is_stuck, past.is_some()),
        );
        Some(Finding::new(
            "blocked_worker",
            2.0 + worst,
            "/debug/threads",
            says,
        ))
    }

    /// The place of a stack. A thread that could not be stopped in a call has none, and was stopped before and after.
    fn at(&self, stack: &Stack) -> String {
        if !stack.frames.is_empty() {
            return format!("at {}", place(stack));
        }
        let is_this = |other: &Stack| other.frames.is_empty() && other.call == stack.call;
        let threads = self.drive().into_iter();
        let threads = threads.filter(|thread| thread.stacks.iter().any(is_this));
        let around = threads.flat_map(|thread| &thread.stacks);
        let around = around.filter(|stack| own(stack).is_some() && is_told(stack));
        grouped(around, function).first().map_or_else(
            || "at an unknown place".to_owned(),
            |around| format!("probably in {}", place(around.most)),
        )
    }

    fn computing_worker(&self, held: f64) -> Option<Finding> {
        let drive = self.run_requests();
        let samples: u64 = drive.iter().map(|thread| thread.samples).sum();
        let (found, of_all) = most_frequent(in_state(&drive, State::Running))?;
        let busy = of_all as f64 / samples.max(1) as f64;
        let share = found.samples as f64 / of_all.max(1) as f64;
        let is_busy = busy >= BUSY || held >= HELD && busy >= BUSY_WHILE_HELD;
        let is_told = is_busy && share >= MOST && found.samples >= FEWEST && is_told(found.most);
        // Who is blocked most of the time is not held up by what else it does.
        if !is_told || worst(&self.drive()) >= BUSY {
            return None;
        }
        let says = format!(
            "Threads that run requests compute {:.0} % of the time, {:.0} % of that at {}; one did not yield for {:.0} ms. \
             Whoever has to be polled waits meanwhile. Do it once and not for each request, do less of it, or do it on a \
             blocking thread.",
            busy * 100.0,
            share * 100.0,
            place(found.most),
            held * 1e3,
        );
        Some(Finding::new(
            "computing_worker",
            1.0 + busy / 2.0,
            "/debug/pprof/flamegraph",
            says,
        ))
    }

    /// Where threads compute most, and how much of all computing is there; `None` if it is nowhere in particular.
    pub fn computing(&self) -> Option<String> {
        let all: Vec<&Thread> = self.threads.iter().collect();
        let functions = by_function(in_state(&all, State::Running));
        let all: u64 = functions.iter().map(|function| function.samples).sum();
        let share = |function: &Seen<'_>| function.samples as f64 / all.max(1) as f64;
        let places = functions
            .iter()
            .filter(|function| function.samples >= FEWEST && share(function) >= MUCH)
            .filter(|function| is_told(function.most))
            .take(MOST_PLACES)
            .map(|function| {
                format!(
                    "{:.0} % at {}",
                    share(function) * 100.0,
                    place(function.most)
                )
            });
        let places: Vec<_> = places.collect();
        (!places.is_empty()).then(|| places.join("; "))
    }

    /// Where most of the blocking threads are that have something to do.
    pub fn at_work_on_blocking_threads(&self) -> Option<String> {
        let threads = self.threads.iter();
        let threads = threads.filter(|thread| thread.role == Role::Blocking.name());
        let stacks = threads.flat_map(|thread| &thread.stacks);
        let (found, _) = most_frequent(stacks.filter(|stack| stack.state != State::Idle))?;
        Some(format!("{} {}", place(found.most), found.text()))
    }
}

/// The share of the time in which a thread sleeps in calls that hold up what it has in hand.
fn blocked_share(thread: &Thread) -> f64 {
    let stacks = in_state(&[thread], State::Blocked);
    let samples: u64 = stacks.map(|stack| stack.samples).sum();
    samples as f64 / thread.samples.max(1) as f64
}

fn worst(threads: &[&Thread]) -> f64 {
    let shares = threads.iter().map(|thread| blocked_share(thread));
    shares.fold(0.0, f64::max)
}

/// What these threads did in a state, but for handing work over: the runtime's own locks are there, and it is what
/// keeps the thread free.
fn in_state<'a>(threads: &[&'a Thread], state: State) -> impl Iterator<Item = &'a Stack> + use<'a> {
    let threads: Vec<&'a Thread> = threads.to_vec();
    let stacks = threads.into_iter().flat_map(|thread| &thread.stacks);
    stacks.filter(move |stack| stack.state == state && !hands_over(stack))
}

/// Threads that drive no tasks, such as blocking ones, and take turns at a lock.
fn of_locks<'a>(
    others: impl Iterator<Item = &'a Stack>,
    all: impl Iterator<Item = &'a Stack>,
    moments: u64,
) -> Option<Finding> {
    let (found, _) = most_frequent(others.filter(|stack| waits_for_lock(stack)))?;
    let threads = found.samples as f64 / moments.max(1) as f64;
    let past = past(found.most, all, moments);
    // Idle threads of a pool wait for each other, too: until one of them is given work.
    let is_idle = past
        .as_ref()
        .is_some_and(|past| inner_passes(past.most, PartMeaning::Channel));
    if threads < QUEUE || is_idle {
        return None;
    }
    let says = format!(
        "{threads:.1} threads wait at any time for a lock at {}{}. One is past it at a time, and those whose work they do \
         wait meanwhile: let go of the guard before what takes long, or have several of what it guards, as a pool of \
         connections does.",
        place(found.most),
        past.map_or_else(String::new, |past| format!("; one past it {}", past.does())),
    );
    Some(Finding::new("lock", 1.1, "/debug/threads", says))
}

/// Threads of the database that sleep until another connection has written. Requests only seem to wait for an answer.
fn of_sqlite<'a>(all: impl Iterator<Item = &'a Stack>, moments: u64) -> Option<Finding> {
    let sleeps =
        |stack: &&Stack| stack.state == State::Blocked && passes(stack, PartMeaning::SqliteBusy);
    let (mut asleep, mut of_readers) = (0, 0);
    for stack in all.filter(sleeps) {
        asleep += stack.samples;
        if passes(stack, PartMeaning::SqliteRead) {
            of_readers += stack.samples;
        }
    }
    let threads = asleep as f64 / moments.max(1) as f64;
    if threads < QUEUE {
        return None;
    }
    let advice = if of_readers * 2 > asleep {
        "They only want to read, which the rollback journal does not let them do meanwhile: `journal_mode = WAL` does."
    } else {
        "There is one writer at a time: look for a transaction that writes and then awaits anything but the database, and \
         commit before that."
    };
    let says = format!(
        "{threads:.1} threads of SQLite sleep at any time until another connection has written; requests seem to wait \
         for an answer meanwhile, and keep their connections. {advice}"
    );
    Some(Finding::new(
        "database",
        1.1,
        "/debug/threads?all=true",
        says,
    ))
}

/// What was seen of one function, in one call.
struct Seen<'a> {
    /// The stack with most samples.
    most: &'a Stack,
    samples: u64,
    /// Whether the kernel waited at the same place of the call each time.
    is_same: bool,
}

impl Seen<'_> {
    /// What threads did there, in words.
    fn text(&self) -> String {
        match &self.most.call {
            Some(call) if !self.is_same => format!("(blocked in {call})"),
            _ => self.most.text.clone(),
        }
    }

    /// What a thread does there, in a sentence.
    fn does(&self) -> String {
        let place = place(self.most);
        self.most.in_call().map_or_else(
            || format!("computes at {place}"),
            |call| format!("is in {call} at {place}"),
        )
    }
}

/// The function with most samples, and the samples of all.
fn most_frequent<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Option<(Seen<'a>, u64)> {
    let functions = by_function(stacks);
    let all = functions.iter().map(|function| function.samples).sum();
    Some((functions.into_iter().next()?, all))
}

/// What was seen of each function and call; the most frequent first. A loop is seen at several of its lines, and a call
/// at several places of the kernel.
fn by_function<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Vec<Seen<'a>> {
    grouped(stacks, |stack| {
        (function(stack), stack.state, stack.call.as_deref())
    })
}

/// What was seen with each of these keys; the most frequent first.
fn grouped<'a, Key: Eq + Hash>(
    stacks: impl Iterator<Item = &'a Stack>,
    key: impl Fn(&'a Stack) -> Key,
) -> Vec<Seen<'a>> {
    let mut groups: HashMap<Key, Seen<'_>> = HashMap::new();
    for stack in stacks {
        let seen = groups.entry(key(stack)).or_insert(Seen {
            most: stack,
            samples: 0,
            is_same: true,
        });
        seen.samples += stack.samples;
        seen.is_same &= seen.most.text == stack.text;
        if seen.most.samples < stack.samples {
            seen.most = stack;
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_cached_key(|seen| (Reverse(seen.samples), place(seen.most)));
    groups
}

/// Where threads are most often that have passed the place at which this one waits: of a lock they hold it.
fn past<'a>(waits: &Stack, all: impl Iterator<Item = &'a Stack>, moments: u64) -> Option<Seen<'a>> {
    let is_futex =
        waits.call.as_deref() == Some(FUTEX) && !inner_passes(waits, PartMeaning::Channel);
    let lock = own(waits).filter(|_| is_futex && !is_block_on(waits))?;
    let is_past = |stack: &&Stack| {
        let mut frames = stack.frames.iter().filter(|frame| frame.own);
        frames.any(|frame| frame.function == lock.function && frame.line >= lock.line)
    };
    let waits_too = |stack: &Stack| {
        let is_there = own(stack).is_some_and(|own| own.function == lock.function);
        let is_futex = stack.state == State::Blocked && stack.call == waits.call;
        let is_lock = is_futex || inner_passes(stack, PartMeaning::Lock);
        is_there && is_lock && !inner_passes(stack, PartMeaning::Channel)
    };
    let past =
        all.filter(|stack| stack.state != State::Idle && is_past(stack) && !waits_too(stack));
    let past = grouped(past, |stack| (function(stack), stack.in_call()));
    let found = past.into_iter().next()?;
    let is_often = found.samples as f64 >= OFTEN * moments as f64 && found.samples >= FEWEST;
    is_often.then_some(found)
}

/// The service's own that is innermost.
fn own(stack: &Stack) -> Option<&Frame> {
    stack.frames.iter().rev().find(|frame| frame.own)
}

/// What the service's innermost function has called.
fn inner(stack: &Stack) -> &[Frame] {
    let own = stack.frames.iter().rposition(|frame| frame.own);
    own.map_or(&[], |own| &stack.frames[own + 1..])
}

fn inner_passes(stack: &Stack, meaning: PartMeaning) -> bool {
    let mut frames = inner(stack).iter();
    frames.any(|frame| meaning.fits(&frame.function))
}

/// Whether it gives work to a blocking thread, or waits for the lock of the runtime to which it gives a task.
fn hands_over(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::HandsOver)
        || stack.state == State::Blocked && inner_passes(stack, PartMeaning::Scheduler)
}

/// Whether it waits for a lock, and not for what idle threads wait for.
fn waits_for_lock(stack: &Stack) -> bool {
    stack.state == State::Blocked
        && stack.call.as_deref() == Some(FUTEX)
        && inner_passes(stack, PartMeaning::Lock)
        && !inner_passes(stack, PartMeaning::Channel)
        && !hands_over(stack)
}

/// Whether a function that is not async waits for a future.
fn is_block_on(stack: &Stack) -> bool {
    inner_passes(stack, PartMeaning::BlockOn)
}

/// Whether its place says anything: where the work is not all that the process does, or a library's.
fn is_told(stack: &Stack) -> bool {
    match own(stack) {
        Some(own) => !is_main(&own.function),
        None => stack.called_library().is_some(),
    }
}

/// The service's own that is innermost, or what a library was called for.
fn function(stack: &Stack) -> Option<&str> {
    let frame = own(stack).or_else(|| stack.called_library());
    let frame = frame.or(stack.frames.last())?;
    Some(&frame.function)
}

/// The line of the service's and the one that called it, or what a library was called for.
fn place(stack: &Stack) -> String {
    let Some(innermost) = own(stack) else {
        let function = function(stack);
        return function.unwrap_or("an unknown place").to_owned();
    };
    let mut own = stack.frames.iter().filter(|frame| frame.own);
    let called_by = own.rfind(|frame| frame.function != innermost.function);
    let called_by = called_by.filter(|frame| !is_main(&frame.function));
    let called_by = called_by.map(|frame| format!(", called by {}", frame.label()));
    innermost.label() + &called_by.unwrap_or_default()
}

/// Whether everything is in this function.
fn is_main(function: &str) -> bool {
    function.contains("::main")
}

fn passes(stack: &Stack, meaning: PartMeaning) -> bool {
    let mut frames = stack.frames.iter();
    frames.any(|frame| meaning.fits(&frame.function))
}

/// What to do about a call that blocks.
fn advice(stack: &Stack, is_stuck: bool, is_past_known: bool) -> &'static str {
    let is_futex = stack.call.as_deref() == Some(FUTEX);
    if passes(stack, PartMeaning::WaitsForRayon) {
        "It waits for rayon's threads: hand the work over with `rayon::spawn`, and await a `oneshot` for its result."
    } else if stack.text.contains("pipe") {
        "Whoever reads what it writes is slow, or gone: write logs from a thread of their own, which may drop lines."
    } else if passes(stack, PartMeaning::NameLookup) {
        "A name is looked up: `tokio::net::lookup_host` does that on a blocking thread."
    } else if is_block_on(stack) {
        "A future is awaited by `block_on`, which keeps the thread: `.await` it. Where that cannot be, do it on a blocking \
         thread (`tokio::task::spawn_blocking`)."
    } else if is_futex && is_past_known {
        "It waits for a lock of std, parking_lot or DashMap: let go of the guard before what takes long, or do both on a \
         blocking thread."
    } else if is_futex && is_stuck {
        "It may never return, for no thread is past it: let go of a guard before the `.await`, and take no second guard \
         of the same lock on a thread, nor one that is held by who waits for this thread."
    } else if is_futex {
        "A lock of std, parking_lot or DashMap, or a channel: let go of a guard before the `.await`, and wait for \
         threads by async means."
    } else {
        "Do it on a blocking thread (`tokio::task::spawn_blocking`), or by a call that can be awaited."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "std::sync::poison::mutex::Mutex<T>::lock";
    const BLOCKING: &str = "tokio::runtime::blocking::pool::Inner::run";
    const WORKER: &str = "tokio::runtime::scheduler::multi_thread::worker::run";

    fn in_call(samples: u64, call: &str, functions: &[&str]) -> Stack {
        Stack::of(samples, State::Blocked, functions).calling(call)
    }

    fn runs(samples: u64, functions: &[&str]) -> Stack {
        Stack::of(samples, State::Running, functions)
    }

    /// What is said of workers that did this in 100 moments.
    fn said(workers: Vec<Vec<Stack>>) -> Option<String> {
        let threads = workers
            .into_iter()
            .map(|did| Thread::of("tokio worker", did));
        said_of(threads.collect())
    }

    fn said_of(threads: Vec<Thread>) -> Option<String> {
        let findings = ThreadProfile::of(100, threads).findings(0.05);
        findings.into_iter().next().map(|finding| finding.says)
    }

    #[test]
    fn who_queues_for_a_lock_is_told_with_who_is_past_it() {
        let wait = |inner| in_call(450, "futex", &[BLOCKING, "shop::read", inner]);
        let holds = |inner| in_call(90, "futex", &[BLOCKING, "shop::read", inner]);
        let query = in_call(90, "fsync", &[BLOCKING, "shop::read", "shop::query"]);
        let told = |stacks: &[Stack]| {
            of_locks(stacks.iter(), stacks.iter(), 100).map(|finding| finding.says)
        };
        let says = told(&[wait(LOCK), query]).expect("a queue");
        assert!(
            says.starts_with(
                "4.5 threads wait at any time for a lock at shop::read; one past it is in fsync at shop::query"
            ),
            "{says}"
        );
        let receives = "std::sync::mpsc::Receiver<T>::recv";
        for idle in [
            vec![in_call(90, "futex", &[BLOCKING, "shop::read", LOCK])],
            vec![wait(receives)],
            vec![wait("std::sync::poison::condvar::Condvar::wait")],
            // The thread pool of the Rust book: one waits for a job, with a lock for which the others wait.
            vec![wait(LOCK), holds(receives)],
        ] {
            assert_eq!(told(&idle), None, "{idle:?}");
        }
    }

    #[test]
    fn a_worker_that_waits_for_a_lock_is_told_with_who_is_past_it() {
        let waits = in_call(60, "futex", &[WORKER, "shop::append", LOCK]);
        // The kernel waits for one call at several places, and is on a CPU meanwhile.
        let mut syncs = in_call(15, "fsync", &[WORKER, "shop::append", "fsync"]);
        syncs.text = "(blocked in fsync: folio_wait_bit)".to_owned();
        let works = runs(10, &[WORKER, "shop::append", "__GI_fsync"]);
        // Whoever is about to sleep is not past it.
        let contends = runs(40, &[WORKER, "shop::append", LOCK]);
        let says = said(vec![vec![waits, syncs, works, contends]]).expect("it is blocked");
        assert!(
            says.contains("futex at shop::append; whoever is past it is in fsync at shop::append."),
            "{says}"
        );
        assert!(
            says.contains("let go of the guard before what takes long"),
            "{says}"
        );
    }

    #[test]
    fn a_call_is_one_wherever_the_kernel_waits_in_it() {
        let sync = |samples, text: &str| {
            let mut stack = in_call(samples, "fsync", &[WORKER, "shop::append"]);
            text.clone_into(&mut stack.text);
            stack
        };
        let reads = in_call(20, "read", &[WORKER, "shop::load"]);
        let does = [
            sync(15, "(blocked in fsync: wait_bit)"),
            sync(15, "(blocked in fsync: commit)"),
            reads,
        ];
        let says = said(vec![does.into()]).expect("it is blocked");
        assert!(says.contains("blocked in fsync at shop::append"), "{says}");
        let same = vec![
            sync(15, "(blocked in fsync: wait_bit)"),
            sync(15, "(blocked in fsync: wait_bit)"),
        ];
        let says = said(vec![same]).expect("it is blocked");
        assert!(says.contains("blocked in fsync: wait_bit at"), "{says}");
    }

    #[test]
    fn threads_that_all_wait_for_ever_are_told_to_hold_it_themselves() {
        let waits = |samples| in_call(samples, "futex", &[WORKER, "shop::visit", LOCK]);
        let is_stuck = |workers| {
            said(workers)
                .expect("blocked")
                .contains("It may never return")
        };
        assert!(is_stuck(vec![vec![waits(100)], vec![waits(100)]]));
        let goes_on = || vec![waits(90), runs(10, &[WORKER])];
        assert!(!is_stuck(vec![vec![waits(100)], goes_on()]));
        let holds = vec![in_call(
            100,
            "fsync",
            &[WORKER, "shop::visit", "shop::save"],
        )];
        assert!(!is_stuck(vec![vec![waits(101)], holds]), "it is held");
        let receives = "std::sync::mpsc::Receiver<T>::recv";
        let receives = in_call(100, "futex", &[WORKER, "shop::visit", receives]);
        assert!(!is_stuck(vec![vec![receives]]));
    }

    #[test]
    fn a_future_that_block_on_awaits_is_no_lock() {
        let block_on = "futures_executor::local_pool::block_on";
        let waits = in_call(
            90,
            "futex",
            &[WORKER, "shop::version", block_on, "std::thread::park"],
        );
        let says = said(vec![vec![waits]]).expect("it is blocked");
        assert!(says.contains("A future is awaited by `block_on`"), "{says}");
        // All that a service does is in its `block_on`.
        let waits = in_call(
            90,
            "futex",
            &[
                "shop::main",
                "tokio::runtime::Runtime::block_on",
                "shop::visit",
                LOCK,
            ],
        );
        let says = said(vec![vec![waits]]).expect("it is blocked");
        assert!(!says.contains("block_on"), "{says}");
    }

    #[test]
    fn what_computes_without_the_services_code_is_named_by_its_library() {
        let says = |functions: &[&str]| said(vec![vec![runs(90, functions)]]);
        let carried = [
            WORKER,
            "await_profile::probe::Probe::poll",
            "gate::Service::call",
            "axum::json::Json<T>::into_response",
        ];
        let json = [
            &carried[..],
            &[
                "serde_json::ser::to_writer",
                "bytes::BytesMut::put",
                "serde_json::ser::end",
            ],
        ]
        .concat();
        let told = says(&json).expect("it computes");
        assert!(told.contains("at serde_json::ser::to_writer;"), "{told}");
        for nobody in [
            &carried[..],
            &[WORKER, "shop::main"],
            &[WORKER, "debug_endpoints::look::judge", "gimli::read"],
            &[
                "std::thread::start",
                "await_profile::sampler::collect",
                "gimli::read",
            ],
        ] {
            assert_eq!(says(nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn handing_work_over_is_neither_a_wait_nor_computing() {
        let pool = "tokio::runtime::blocking::pool::Spawner::spawn_task";
        let hands = [
            WORKER,
            "shop::visit",
            "tokio::task::blocking::spawn_blocking",
            pool,
            LOCK,
        ];
        assert_eq!(said(vec![vec![in_call(90, "futex", &hands)]]), None);
        assert_eq!(said(vec![vec![runs(90, &hands)]]), None);
        let queue = "tokio::runtime::scheduler::inject::Inject::push";
        let spawns = [
            WORKER,
            "shop::visit",
            "tokio::task::spawn::spawn",
            queue,
            LOCK,
        ];
        assert_eq!(said(vec![vec![in_call(90, "futex", &spawns)]]), None);
        assert!(said(vec![vec![runs(90, &spawns)]]).is_some());
        // The work itself is in what it was handed to.
        let work = [pool, "shop::export"];
        assert!(said(vec![vec![in_call(90, "read", &work)]]).is_some());
    }

    #[test]
    fn a_thread_that_cannot_be_stopped_is_where_it_was_around() {
        let unseen = in_call(90, "recvfrom", &[]);
        let around = vec![unseen, runs(3, &[WORKER, "shop::rate"]), runs(4, &[WORKER])];
        let elsewhere = vec![runs(50, &[WORKER, "shop::export"])];
        let says = said(vec![around, elsewhere]).expect("it is blocked");
        assert!(
            says.contains("blocked in recvfrom probably in shop::rate."),
            "{says}"
        );
        let says = said(vec![vec![in_call(90, "recvfrom", &[])]]).expect("it is blocked");
        assert!(says.contains("at an unknown place"), "{says}");
    }

    #[test]
    fn computing_is_for_threads_that_run_no_requests() {
        let plans = || Thread::of("tokio worker", vec![runs(100, &[WORKER, "shop::plan"])]);
        let mut serves = Thread::of("tokio worker", vec![runs(20, &[WORKER])]);
        assert!(said_of(vec![plans()]).is_some(), "none is known");
        serves.began_requests = true;
        assert_eq!(said_of(vec![plans(), serves]), None);
    }

    #[test]
    fn who_waits_for_sqlites_writer_is_told_from_who_writes() {
        let reads = "sqlite3PagerSharedLock";
        let sleeps = |samples, wants| {
            let functions = ["sqlite3_step", wants, "sqlite3InvokeBusyHandler"];
            Stack::of(samples, State::Blocked, &functions)
        };
        let works = Stack::of(900, State::Running, &["sqlite3_step"]);
        let seen = [sleeps(150, reads), sleeps(30, "btreeBeginTrans"), works];
        let says = |stacks: &[Stack]| of_sqlite(stacks.iter(), 100).map(|finding| finding.says);
        let readers = says(&seen).expect("1.8 threads");
        assert!(
            readers.starts_with("1.8 threads of SQLite sleep"),
            "{readers}"
        );
        assert!(readers.contains("journal_mode = WAL"), "{readers}");
        let writers = says(&[sleeps(300, "btreeBeginTrans")]).expect("3 threads");
        assert!(writers.contains("one writer at a time"), "{writers}");
        assert_eq!(says(&seen[1..]), None);
    }
}
