//! A pool of threads of our own, with a bounded queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Jobs that the queue holds. When it is full, the next caller waits as a task for a slot.
const QUEUE_LENGTH: usize = 256;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads, started at once and kept.
#[derive(Debug)]
pub struct Pool {
    queue: Arc<Queue>,
    slots: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Each job holds its slot of the queue until a thread takes the job.
    jobs: VecDeque<(Job, OwnedSemaphorePermit)>,
    is_closed: bool,
}

// A job has nothing to print.
impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of `threads` threads, or of fewer if the system refuses some.
    pub fn new(threads: usize) -> Self {
        let queue = Arc::new(Queue::default());
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            let builder = thread::Builder::new().name("dispatch".to_owned());
            let _ = builder.spawn(move || {
                while let Some(job) = queue.next() {
                    // The panic hook has reported it, and the caller gets `None`.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            });
        }
        Self {
            queue,
            slots: Arc::new(Semaphore::new(QUEUE_LENGTH)),
        }
    }

    // ANCHOR: run
    /// Queues `work` and waits for its result; `None` if it panicked.
    ///
    /// A queued job is skipped when its caller has gone.
    pub async fn run<T, F>(&self, work: F) -> Option<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
        let (result, received) = oneshot::channel();
        let job = move || {
            if !result.is_closed() {
                let _ = result.send(work());
            }
        };
        self.queue.push(Box::new(job), slot);
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
    fn push(&self, job: Job, slot: OwnedSemaphorePermit) {
        let waiting = self.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.jobs.push_back((job, slot));
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits for the next job; `None` when the pool was dropped.
    fn next(&self) -> Option<Job> {
        let waiting = self.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some((job, _slot)) = waiting.jobs.pop_front() {
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
