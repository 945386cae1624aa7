//! Loom models of how a request's polls, its wakes and the sampler share a slot.
//!
//! These are the files of `await-profile` itself, with loom's locks, atomics and thread-local variables
//! ([`sync`]). Loom runs each model once for every order of the threads' steps, with at most three
//! preemptions unless `LOOM_MAX_PREEMPTIONS` sets another number. It also tries every value that a
//! read of an atomic may return. `Arc`, which makes the wakers, is the standard library's, and no
//! stack is walked.

#[path = "../../../src/answers.rs"]
mod answers;
#[path = "../../../src/capture.rs"]
mod capture;
#[path = "../../../src/clone_hook.rs"]
mod clone_hook;
#[path = "../../../src/collected.rs"]
mod collected;
#[path = "../../../src/ended.rs"]
mod ended;
#[path = "../../../src/error.rs"]
mod error;
#[path = "../../../src/function.rs"]
mod function;
#[path = "../../../src/interval.rs"]
mod interval;
#[path = "../../../src/label.rs"]
mod label;
#[path = "../../../src/latency.rs"]
mod latency;
#[cfg(target_os = "linux")]
#[path = "../../../src/libraries.rs"]
mod libraries;
#[path = "../../../src/lock.rs"]
mod lock;
#[path = "../../../src/options.rs"]
mod options;
#[path = "../../../src/percentile.rs"]
mod percentile;
#[path = "../../../src/poll_guard.rs"]
mod poll_guard;
#[path = "../../../src/probe.rs"]
mod probe;
#[path = "../../../src/raw_stack.rs"]
mod raw_stack;
#[path = "../../../src/registry.rs"]
mod registry;
#[path = "../../../src/routes.rs"]
mod routes;
#[path = "../../../src/sampler.rs"]
mod sampler;
#[path = "../../../src/session.rs"]
mod session;
#[path = "../../../src/shared.rs"]
mod shared;
#[path = "../../../src/slot.rs"]
mod slot;
#[path = "../../../src/symbols.rs"]
mod symbols;
#[path = "../../../src/tail_times.rs"]
mod tail_times;
#[path = "../../../src/task.rs"]
mod task;
#[path = "../../../src/timing.rs"]
mod timing;
#[path = "../../../src/tracked.rs"]
mod tracked;
#[path = "../../../src/tracking_waker.rs"]
mod tracking_waker;

mod sync {
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    /// Accepts `const` initializers, for which loom's `thread_local` has no rule.
    macro_rules! of_thread {
        ($(#[$doc:meta])* static $name:ident: $type:ty = const $first:block;) => {
            loom::thread_local! { $(#[$doc])* static $name: $type = $first; }
        };
    }
    pub(crate) use of_thread as thread_local;

    /// Number of shards: all requests are in one. More shards would add steps, but no new kinds of them.
    pub(crate) const SHARDS: usize = 1;
    pub(crate) const HAS_STACK: bool = false;
}

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;

use crate::collected::{Collected, Outcome};
use crate::probe::Probe;
use crate::sampler::Sampler;
use crate::session::Purpose;
use crate::shared::{Permit, Shared};
use crate::tracked::{Tracked, inherit};

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}

/// Returns the state of an armed profiler, and the permit to take a profile.
fn armed() -> (Arc<Shared>, Permit) {
    let shared = Arc::new(Shared::new());
    shared.set_armed(true);
    let permit = Permit::acquire(&shared, Purpose::Profile).expect("nobody else takes a profile");
    (shared, permit)
}

/// Returns the same with a sampler, while a profile is taken.
fn profiling() -> (Arc<Shared>, Permit, Sampler) {
    let (shared, permit) = armed();
    let sampler = Sampler::start(&permit, fastrand::Rng::with_seed(1));
    (shared, permit, sampler)
}

/// Clones of the waker that a future was polled with. The lock is not loom's, since it is not part of
/// the protocol.
type Wakers = Arc<std::sync::Mutex<Vec<Waker>>>;

/// Future that clones its waker each time it is polled, and ends after `polls` polls.
struct ClonesWaker {
    kept: Wakers,
    polls: usize,
}

impl Future for ClonesWaker {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.polls == 0 {
            return Poll::Ready(());
        }
        self.polls -= 1;
        self.kept
            .lock()
            .expect("nobody panics")
            .push(cx.waker().clone());
        Poll::Pending
    }
}

/// Executor's side of a request. It ignores wakes, since it may poll at any time.
struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

struct Running<F> {
    future: Pin<Box<Tracked<F>>>,
    waker: Waker,
}

impl<F: Future> Running<F> {
    fn new(future: Tracked<F>) -> Self {
        Running {
            future: Box::pin(future),
            waker: Waker::from(Arc::new(Task)),
        }
    }

    fn poll(&mut self) -> Poll<F::Output> {
        let waker = &self.waker;
        self.future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

fn request(shared: &Arc<Shared>, polls: usize) -> (Running<ClonesWaker>, Wakers) {
    let kept = Wakers::default();
    let probe = Probe::new(shared.clone(), "GET /".into());
    let future = ClonesWaker {
        kept: kept.clone(),
        polls,
    };
    (Running::new(Tracked::new(probe, future)), kept)
}

fn last(kept: &Wakers) -> Waker {
    let waker = kept.lock().expect("nobody panics").pop();
    waker.expect("it was polled")
}

fn outcomes(sampler: Sampler) -> Vec<Outcome> {
    // `finish` subtracts each answer from the number of expected ones, so one answer too many panics.
    let Collected { samples, idle, .. } = sampler.finish();
    let mut outcomes: Vec<_> = samples.into_iter().map(|sample| sample.outcome).collect();
    assert!(!outcomes.contains(&Outcome::Unanswered), "{outcomes:?}");
    for _ in 0..idle {
        outcomes.push(Outcome::Finished);
    }
    outcomes
}

/// Polls, wakes and samples a request at the same time, and then perhaps drops it. If it is not dropped, its
/// next poll answers the sample at the latest.
pub fn every_sample_is_answered_once() {
    for dropped in [false, true] {
        check(move || {
            let (shared, permit, mut sampler) = profiling();
            let (mut running, kept) = request(&shared, 9);
            assert!(running.poll().is_pending());
            let waker = last(&kept);
            let waking = thread::spawn(move || waker.wake());
            let sampling = thread::spawn(move || {
                sampler.sample_once();
                sampler
            });
            assert!(running.poll().is_pending());
            let mut running = Some(running).filter(|_| !dropped);
            waking.join().expect("a wake panics");
            let sampler = sampling.join().expect("the sampler panics");
            if let Some(running) = &mut running {
                assert!(running.poll().is_pending());
            }
            assert_eq!(outcomes(sampler).len(), 1);
            drop(running);
            assert_eq!(shared.registry.len(), 0);
            drop(permit);
        });
    }
}

/// Wakes a request while it is sampled. Its wait is then over, and its next wait is another one.
pub fn a_request_that_was_woken_first_is_not_seen_at_its_next_wait() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let (mut running, kept) = request(&shared, 9);
        assert!(running.poll().is_pending());
        let waker = last(&kept);
        let waking = thread::spawn(move || waker.wake());
        sampler.sample_once();
        waking.join().expect("a wake panics");
        assert!(running.poll().is_pending());
        let [outcome] = outcomes(sampler).try_into().expect("one sample");
        assert!(
            matches!(outcome, Outcome::Ready | Outcome::WokenFirst),
            "{outcome:?}"
        );
        drop((running, permit));
    });
}

/// Wakes, polls and samples a request again at the same time, after its stack was captured.
pub fn a_release_is_noted_once_and_for_its_own_wait() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let (mut running, kept) = request(&shared, 9);
        assert!(running.poll().is_pending());
        sampler.sample_once();
        assert!(running.poll().is_pending());
        let waker = last(&kept);
        let waking = thread::spawn(move || waker.wake());
        let sampling = thread::spawn(move || {
            sampler.sample_once();
            sampler
        });
        assert!(running.poll().is_pending());
        waking.join().expect("a wake panics");
        let mut sampler = sampling.join().expect("the sampler panics");
        assert!(running.poll().is_pending());
        sampler.gather();
        let [first, second] = sampler.collected.samples.as_slice() else {
            panic!("{:?}", sampler.collected.samples);
        };
        assert!(matches!(first.outcome, Outcome::Waiting(_)), "{first:?}");
        // There was one wake. If it ended the second wait, that sample saw the request woken, and has no release.
        let same_wait = second.release == first.release;
        assert!(second.release.is_none() || same_wait, "{second:?}");
        assert_eq!(outcomes(sampler).len(), 2);
        drop((running, permit));
    });
}

/// Begins and ends requests on two threads, while one of them is chosen.
pub fn requests_that_end_leave_the_registry() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let serve = |shared: Arc<Shared>| {
            thread::spawn(move || {
                let (mut running, _kept) = request(&shared, 1);
                assert!(running.poll().is_pending());
                assert!(running.poll().is_ready());
            })
        };
        let serving = [serve(shared.clone()), serve(shared.clone())];
        sampler.sample_once();
        for thread in serving {
            thread.join().expect("a request panics");
        }
        assert_eq!(outcomes(sampler).len(), 1);
        assert_eq!(shared.registry.len(), 0);
        let finished: u64 = shared.registry.routes().values().map(|r| r.finished).sum();
        assert_eq!(finished, 2);
        drop(permit);
    });
}

/// Ends a profile and begins the next, while a request is polled and woken.
pub fn a_sample_of_one_profile_is_not_answered_in_the_next() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let (mut running, kept) = request(&shared, 9);
        assert!(running.poll().is_pending());
        let waker = last(&kept);
        sampler.sample_once();
        let sampling = thread::spawn(move || {
            permit.switch_off();
            let first = sampler.finish();
            let mut second = Sampler::start(&permit, fastrand::Rng::with_seed(2));
            second.sample_once();
            (first, second, permit)
        });
        let waking = thread::spawn(move || waker.wake());
        assert!(running.poll().is_pending());
        let (first, second, permit) = sampling.join().expect("the sampler panics");
        waking.join().expect("a wake panics");
        assert!(running.poll().is_pending());
        assert_eq!(first.samples.len(), 1);
        assert_eq!(outcomes(second).len(), 1);
        drop((running, permit));
    });
}

/// Polls a request and its spawned child on two threads, while both are chosen.
pub fn a_child_and_its_request_are_answered_each() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let (kept, kept_by_child) = (Wakers::default(), Wakers::default());
        let spawned = Arc::new(std::sync::Mutex::new(None));
        let probe = Probe::new(shared.clone(), "GET /".into());
        let spawns = {
            let (kept, kept_by_child, spawned) =
                (kept.clone(), kept_by_child.clone(), spawned.clone());
            std::future::poll_fn(move |cx| {
                kept.lock().expect("nobody panics").push(cx.waker().clone());
                let child = || {
                    Running::new(inherit(ClonesWaker {
                        kept: kept_by_child.clone(),
                        polls: 9,
                    }))
                };
                let mut spawned = spawned.lock().expect("nobody panics");
                spawned.get_or_insert_with(child);
                Poll::<()>::Pending
            })
        };
        let mut running = Running::new(Tracked::new(probe, spawns));
        assert!(running.poll().is_pending());
        let child = spawned.lock().expect("nobody panics").take();
        let mut child = child.expect("it was spawned");
        assert!(child.poll().is_pending());
        let sampling = thread::spawn(move || {
            sampler.sample_once();
            sampler
        });
        let polling = thread::spawn(move || {
            assert!(child.poll().is_pending());
            child
        });
        assert!(running.poll().is_pending());
        let sampler = sampling.join().expect("the sampler panics");
        let child = polling.join().expect("the child panics");
        drop((running, child));
        assert_eq!(outcomes(sampler).len(), 1);
        drop(permit);
    });
}

/// Wakes a request while it is polled: it is ready again when the poll is over.
pub fn a_wake_during_a_poll_is_kept() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let (send, receive) = std::sync::mpsc::channel();
        let probe = Probe::new(shared.clone(), "GET /".into());
        let wakes = std::future::poll_fn(move |cx| {
            let waker = cx.waker().clone();
            let waking = thread::spawn(move || waker.wake());
            send.send(waking).expect("the test takes it");
            Poll::<()>::Pending
        });
        let mut running = Running::new(Tracked::new(probe, wakes));
        assert!(running.poll().is_pending());
        let waking = receive.try_recv().expect("it was polled");
        waking.join().expect("a wake panics");
        sampler.sample_once();
        assert_eq!(outcomes(sampler), [Outcome::Ready]);
        drop((running, permit));
    });
}

/// Samples a request for a profile and for counts, while it is polled. Each gets an answer of its own.
pub fn a_profile_and_counts_are_answered_each() {
    check(|| {
        let (shared, permit, mut sampler) = profiling();
        let for_counts = Permit::acquire(&shared, Purpose::Counts).expect("nobody else counts");
        let mut counting = Sampler::start(&for_counts, fastrand::Rng::with_seed(2));
        let (mut running, _kept) = request(&shared, 9);
        assert!(running.poll().is_pending());
        let sampling = thread::spawn(move || {
            sampler.sample_once();
            permit.switch_off();
            (sampler, permit)
        });
        counting.sample_once();
        assert!(running.poll().is_pending());
        let (sampler, permit) = sampling.join().expect("the sampler panics");
        assert!(running.poll().is_pending());
        assert_eq!(outcomes(sampler).len(), 1);
        assert_eq!(outcomes(counting).len(), 1);
        drop((running, permit, for_counts));
    });
}

/// Begins a profile while a request is polled, and lets the first sample fall on that request. The request is
/// woken twice: before the profile, when nothing records wakes, and after that poll, which may or may
/// not have known of the profile. The sample must not count for either wait.
pub fn a_request_is_not_sampled_before_its_wakes_are_recorded() {
    // Loom first tries the order in which nothing interrupts the threads, so try both orders of the two.
    for poll_first in [false, true] {
        check(move || {
            let (shared, permit) = armed();
            let (mut running, kept) = request(&shared, 9);
            assert!(running.poll().is_pending());
            last(&kept).wake();
            let sampling = thread::spawn(move || {
                let mut sampler = Sampler::start(&permit, fastrand::Rng::with_seed(1));
                if poll_first {
                    thread::yield_now();
                }
                sampler.sample_once();
                (sampler, permit)
            });
            if !poll_first {
                thread::yield_now();
            }
            assert!(running.poll().is_pending());
            let (sampler, permit) = sampling.join().expect("the sampler panics");
            last(&kept).wake();
            assert!(running.poll().is_pending());
            let [outcome] = outcomes(sampler).try_into().expect("one sample");
            assert!(!matches!(outcome, Outcome::Waiting(_)), "{outcome:?}");
            drop((running, permit));
        });
    }
}
