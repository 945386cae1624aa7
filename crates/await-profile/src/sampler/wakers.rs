//! Where wakes go, and what they say of samples.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use super::random_lives::{Kept, Task};
use super::{Sampler, SeenAs};
use crate::shared::Running;
use crate::slot::lock;
use crate::{AwaitProfiler, Tracked};

/// A future that gives its waker away each time it is polled.
struct Gives(Kept);

impl Future for Gives {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        lock(&self.0).push(cx.waker().clone());
        Poll::Pending
    }
}

#[test]
fn no_wake_is_lost() {
    let profiler = AwaitProfiler::new();
    let running = Running::start(profiler.shared).unwrap();
    let (kept, task) = (Kept::default(), Arc::new(Task::default()));
    let waker = Waker::from(task.clone());
    let mut future = Box::pin(profiler.wrap("GET /", Gives(kept.clone())));
    let mut poll = || {
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    };
    let wake_all = |expected| {
        let wakers = std::mem::take(&mut *lock(&kept));
        assert!(!wakers.is_empty());
        wakers.into_iter().for_each(Waker::wake);
        assert_eq!(task.wakes.swap(0, Ordering::Relaxed), expected);
    };
    poll();
    wake_all(1);
    profiler.arm();
    poll();
    wake_all(1);
    let mut sampler = Sampler::start(&running, Some(1));
    poll();
    // Chosen: the sampler wakes it, then the poll is recorded, then it is woken.
    sampler.sample_once();
    assert_eq!(task.wakes.swap(0, Ordering::Relaxed), 1);
    poll();
    wake_all(2);
    sampler.gather();
    assert_eq!(sampler.collected.stacks.len(), 1);
    running.switch_off();
    poll();
    wake_all(1);
}

/// A request and the executor's side of it.
struct Request {
    future: Pin<Box<Tracked<Gives>>>,
    task: Arc<Task>,
    kept: Kept,
}

impl Request {
    fn new(profiler: AwaitProfiler) -> Self {
        let kept = Kept::default();
        Request {
            future: Box::pin(profiler.wrap("GET /", Gives(kept.clone()))),
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

fn wakes(task: &Task) -> usize {
    task.wakes.swap(0, Ordering::Relaxed)
}

#[test]
fn a_request_that_ends_instead_of_answering_is_counted_as_that() {
    let profiler = AwaitProfiler::new();
    let running = Running::start(profiler.shared).unwrap();
    let mut sampler = Sampler::start(&running, Some(1));
    for keep_waker in [false, true] {
        let mut request = Request::new(profiler);
        request.poll();
        let waker = keep_waker.then(|| request.take_waker());
        sampler.sample_once();
        drop(request);
        sampler.gather();
        drop(waker);
        let last = sampler.collected.samples.last().unwrap();
        assert_eq!(last.seen, SeenAs::Finished, "waker kept: {keep_waker}");
    }
}

#[test]
fn a_waker_of_an_earlier_request_says_nothing_of_a_later_one() {
    let profiler = AwaitProfiler::new();
    let running = Running::start(profiler.shared).unwrap();
    let mut sampler = Sampler::start(&running, Some(1));
    let mut earlier = Request::new(profiler);
    earlier.poll();
    let (waker, task) = (earlier.take_waker(), earlier.task.clone());
    drop(earlier);

    let mut later = Request::new(profiler);
    later.poll();
    waker.wake();
    assert_eq!((wakes(&task), wakes(&later.task)), (1, 0));
    sampler.sample_once();
    later.poll();
    sampler.gather();
    let seen = &sampler.collected.samples[0].seen;
    assert!(matches!(seen, SeenAs::Waiting(_)), "{seen:?}");
}

#[test]
fn wakes_go_to_the_executor_that_the_waker_was_kept_under() {
    let profiler = AwaitProfiler::new();
    let running = Running::start(profiler.shared).unwrap();
    let mut sampler = Sampler::start(&running, Some(1));
    let mut request = Request::new(profiler);
    request.poll();
    let (first, first_task) = (request.take_waker(), request.task.clone());
    request.task = Arc::default();
    request.poll();
    let second = request.take_waker();

    // The sampler asks where the request lives now.
    sampler.sample_once();
    assert_eq!((wakes(&first_task), wakes(&request.task)), (0, 1));
    second.wake();
    assert_eq!((wakes(&first_task), wakes(&request.task)), (0, 1));
    // Whoever still has the first waker is not heard by the second executor, but it
    // was a wake all the same.
    request.poll();
    first.wake();
    assert_eq!((wakes(&first_task), wakes(&request.task)), (1, 0));
    sampler.sample_once();
    sampler.gather();
    let seen: Vec<_> = sampler.collected.samples.iter().map(|s| &s.seen).collect();
    assert_eq!(seen, [&SeenAs::WokenFirst, &SeenAs::Ready]);

    // Back where it was.
    request.task = first_task;
    request.poll();
    sampler.sample_once();
    assert_eq!(wakes(&request.task), 1);
}
