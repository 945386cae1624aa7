//! A pool of threads of our own, with a bounded queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::mpsc;
use tokio::sync::oneshot::{self, error::RecvError};

/// Jobs that the queue holds. When it is full, the next caller waits as a task for a place in it.
const QUEUE_LENGTH: usize = 256;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads, started at once and kept until the pool is dropped. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool(mpsc::Sender<Job>);

impl Pool {
    /// A pool of `threads` threads.
    pub fn new(threads: usize) -> Self {
        let (jobs, queue) = mpsc::channel::<Job>(QUEUE_LENGTH);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let next = || {
                    let queue = queue.lock();
                    queue
                        .unwrap_or_else(PoisonError::into_inner)
                        .blocking_recv()
                };
                while let Some(job) = next() {
                    // The panic hook has reported it, and the caller gets an error.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            });
        }
        Self(jobs)
    }

    /// Queues `work` and waits for its result. A queued job is skipped when its caller has gone.
    ///
    /// # Errors
    ///
    /// When the work panicked, which drops the sender of its result.
    pub async fn run<T, F>(&self, work: F) -> Result<T, RecvError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (result, received) = oneshot::channel();
        let job = move || {
            if !result.is_closed() {
                let _ = result.send(work());
            }
        };
        // The threads live as long as the queue, so it takes every job.
        let _ = self.0.send(Box::new(job)).await;
        received.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_costs_one_result_and_no_thread() {
        let pool = Pool::new(1);
        assert_eq!(pool.run(|| 1).await, Ok(1));
        let panicked = pool.run(|| -> u8 { panic!("as planned") }).await;
        assert!(panicked.is_err());
        assert_eq!(pool.run(|| 2).await, Ok(2));
    }
}
