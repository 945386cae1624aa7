//! A pool of threads of our own, with a queue that has an end.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Jobs that may wait for a thread. Whoever comes later waits as a task.
const PLACES: usize = 256;

type Job = Box<dyn FnOnce() + Send>;

/// So many threads, started at once and kept.
#[derive(Debug)]
pub struct Pool {
    queue: Arc<Queue>,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// A job with its place, which is given back when a thread takes the job.
    jobs: VecDeque<(Job, OwnedSemaphorePermit)>,
    is_closed: bool,
}

// A job has nothing to tell.
impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of so many threads. Fewer, if the system gives no more.
    pub fn new(threads: usize) -> Self {
        let queue = Arc::new(Queue::default());
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            let builder = thread::Builder::new().name("dispatch".to_owned());
            let _ = builder.spawn(move || {
                while let Some(job) = queue.next() {
                    // A panic has been reported, and whoever waits for the job learns of it.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            });
        }
        Self {
            queue,
            places: Arc::new(Semaphore::new(PLACES)),
        }
    }

    // ANCHOR: run
    /// Queues `work` and waits for its result; `None` if it panicked.
    ///
    /// What was queued is not begun if nobody waits for it any more.
    pub async fn run<T, F>(&self, work: F) -> Option<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let (result, received) = oneshot::channel();
        let job = move || {
            if !result.is_closed() {
                let _ = result.send(work());
            }
        };
        self.queue.push(Box::new(job), place);
        received.await.ok()
    }
    // ANCHOR_END: run
}

impl Drop for Pool {
    fn drop(&mut self) {
        let waiting = self.queue.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn push(&self, job: Job, place: OwnedSemaphorePermit) {
        let waiting = self.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.jobs.push_back((job, place));
        drop(waiting);
        self.changed.notify_one();
    }

    /// The next job, however long that takes; `None` when the pool is gone.
    fn next(&self) -> Option<Job> {
        let waiting = self.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some((job, _place)) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.is_closed {
                return None;
            }
            let changed = self.changed.wait(waiting);
            waiting = changed.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_costs_one_result_and_no_thread() {
        let pool = Pool::new(1);
        assert_eq!(pool.run(|| 1).await, Some(1));
        assert_eq!(pool.run(|| -> u8 { panic!("as planned") }).await, None);
        assert_eq!(pool.run(|| 2).await, Some(2));
    }
}
