//! Tests of the task that a wake reaches, and of its effect on a sample.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{Task, Wakers, permit, sampler};
use crate::collected::Outcome;
use crate::lock::lock;
use crate::{AwaitProfiler, Tracked};

/// Future that clones its waker each time it is polled.
struct ClonesWaker(Wakers);

impl Future for ClonesWaker {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        lock(&self.0).push(cx.waker().clone());
        Poll::Pending
    }
}

/// A request, and the executor's side of it.
struct Request {
    future: Pin<Box<Tracked<ClonesWaker>>>,
    task: Arc<Task>,
    kept: Wakers,
}

impl Request {
    fn new(profiler: &AwaitProfiler) -> Self {
        let kept = Wakers::default();
        Request {
            future: Box::pin(profiler.wrap("GET /", ClonesWaker(kept.clone()))),
            task: Arc::default(),
            kept,
        }
    }

    fn poll(&mut self) {
        let waker = Waker::from(self.task.clone());
        let poll = self.future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    }

    fn take_waker(&self) -> Waker {
        lock(&self.kept).pop().expect("it was polled")
    }
}

#[test]
fn no_wake_is_lost() {
    let profiler = AwaitProfiler::new();
    let permit = permit(&profiler);
    let mut request = Request::new(&profiler);
    let wake_all = |request: &Request, expected| {
        let wakers = std::mem::take(&mut *lock(&request.kept));
        assert!(!wakers.is_empty());
        wakers.into_iter().for_each(Waker::wake);
        assert_eq!(request.task.wakes(), expected);
    };
    request.poll();
    wake_all(&request, 1);
    profiler.arm();
    request.poll();
    wake_all(&request, 1);
    let mut sampler = sampler(&permit, 1);
    request.poll();
    // The request is chosen: the sampler wakes it, the poll is recorded, and then it is woken.
    sampler.sample_once();
    assert_eq!(request.task.wakes(), 1);
    request.poll();
    wake_all(&request, 2);
    sampler.gather();
    assert_eq!(sampler.collected.waits.distinct.len(), 1);
    permit.switch_off();
    request.poll();
    wake_all(&request, 1);
}

#[test]
fn a_request_that_ends_instead_of_answering_is_counted_as_that() {
    let profiler = AwaitProfiler::new();
    let permit = permit(&profiler);
    let mut sampler = sampler(&permit, 1);
    for keep_waker in [false, true] {
        let mut request = Request::new(&profiler);
        request.poll();
        let waker = keep_waker.then(|| request.take_waker());
        sampler.sample_once();
        drop(request);
        sampler.gather();
        drop(waker);
        let last = sampler.collected.samples.last().unwrap();
        assert_eq!(last.outcome, Outcome::Finished, "waker kept: {keep_waker}");
    }
}

#[test]
fn a_waker_of_an_earlier_request_says_nothing_of_a_later_one() {
    let profiler = AwaitProfiler::new();
    let permit = permit(&profiler);
    let mut sampler = sampler(&permit, 1);
    let mut earlier = Request::new(&profiler);
    earlier.poll();
    let (waker, task) = (earlier.take_waker(), earlier.task.clone());
    drop(earlier);

    let mut later = Request::new(&profiler);
    later.poll();
    waker.wake();
    assert_eq!((task.wakes(), later.task.wakes()), (1, 0));
    sampler.sample_once();
    later.poll();
    sampler.gather();
    let seen = &sampler.collected.samples[0].outcome;
    assert!(matches!(seen, Outcome::Waiting(_)), "{seen:?}");
}

#[test]
fn wakes_go_to_the_executor_that_the_waker_was_kept_under() {
    let profiler = AwaitProfiler::new();
    let permit = permit(&profiler);
    let mut sampler = sampler(&permit, 1);
    let mut request = Request::new(&profiler);
    request.poll();
    let (first, first_task) = (request.take_waker(), request.task.clone());
    request.task = Arc::default();
    request.poll();
    let second = request.take_waker();

    // The sampler wakes the task that polled last.
    sampler.sample_once();
    assert_eq!((first_task.wakes(), request.task.wakes()), (0, 1));
    second.wake();
    assert_eq!((first_task.wakes(), request.task.wakes()), (0, 1));
    // The first waker wakes the first task, and counts as a wake of the request.
    request.poll();
    first.wake();
    assert_eq!((first_task.wakes(), request.task.wakes()), (1, 0));
    sampler.sample_once();
    sampler.gather();
    let seen: Vec<_> = sampler
        .collected
        .samples
        .iter()
        .map(|s| &s.outcome)
        .collect();
    assert_eq!(seen, [&Outcome::WokenFirst, &Outcome::Ready]);

    // The request is back in the first task.
    request.task = first_task;
    request.poll();
    sampler.sample_once();
    assert_eq!(request.task.wakes(), 1);
}

/// Wakes a request while the sampler's own wake of its child is on its way.
#[test]
fn a_wake_of_its_own_is_not_taken_for_the_samplers() {
    let profiler = AwaitProfiler::new();
    let permit = permit(&profiler);
    let mut sampler = sampler(&permit, 1);
    let (kept, kept_by_child) = (Wakers::default(), Wakers::default());
    let clones = kept_by_child.clone();
    let parent = kept.clone();
    let mut child = None;
    let mut request = Box::pin(profiler.wrap(
        "GET /",
        std::future::poll_fn(move |cx| {
            lock(&parent).push(cx.waker().clone());
            // The child is polled with the request's own waker, as a `FuturesUnordered` does: a wake of the
            // child wakes its request.
            let clones = || Box::pin(crate::inherit(ClonesWaker(clones.clone())));
            child.get_or_insert_with(clones).as_mut().poll(cx)
        }),
    ));
    let task = Arc::new(Task::default());
    let waker = Waker::from(task.clone());
    let mut poll = || {
        let poll = request.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    };
    for woken_by_itself in [false, true] {
        poll();
        sampler.sample_once();
        if woken_by_itself {
            lock(&kept).pop().expect("it was polled").wake();
        }
        poll();
        sampler.gather();
        let last = &sampler.collected.samples.last().expect("a sample").outcome;
        assert_eq!(*last == Outcome::WokenFirst, woken_by_itself, "{last:?}");
    }
}

/// Makes a thousand profilers, with samples and kept wakers, and checks that none of them stays in memory.
#[test]
fn a_profiler_is_freed_with_its_last_handle_and_request() {
    let mut kept = Vec::new();
    for _ in 0..if cfg!(miri) { 10 } else { 1000 } {
        let profiler = AwaitProfiler::new().armed();
        let state = Arc::downgrade(&profiler.shared);
        let permit = permit(&profiler);
        let mut sampler = sampler(&permit, 1);
        let mut request = Request::new(&profiler);
        request.poll();
        sampler.sample_once();
        request.poll();
        drop((sampler, permit));
        let other = profiler.clone();
        drop(profiler);
        assert_eq!(other.in_flight(), 1);
        drop(other);
        // Only the request still refers to the profiler, and it goes on.
        assert!(state.upgrade().is_some());
        request.poll();
        kept.push(request.take_waker());
        drop(request);
        assert!(state.upgrade().is_none());
    }
    kept.into_iter().for_each(Waker::wake);
}
