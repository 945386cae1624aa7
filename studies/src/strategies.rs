//! The ways to run code that blocks, and the timer that shows what each costs others. `bodies` and `blocking` share them.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use futures_intrusive::sync::Semaphore as IntrusiveSemaphore;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};
use tokio::time::{Instant, sleep_until};

/// Jobs that a pool's queue holds, more than a batch has.
const LONG_QUEUE: usize = 1024;
/// Jobs that the queue holds whose callers help.
const SHORT_QUEUE: usize = 4;
/// Time between two ticks of the timer.
const TICK: Duration = Duration::from_millis(5);

/// Which thread runs code that blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The worker, as if the code did not block.
    Direct,
    /// The worker, after a permit of tokio's semaphore; it hands its tasks to another thread first.
    Permit,
    /// The same, with the semaphore of futures-intrusive.
    IntrusivePermit,
    /// A thread of a pool of its own.
    Dispatch,
    /// The same, with a queue of 4 jobs. A caller that finds it full runs the oldest job.
    DispatchOrRun,
    /// A thread of tokio's own pool.
    SpawnBlocking,
}

impl Strategy {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Permit => "permit",
            Self::IntrusivePermit => "permit of futures-intrusive",
            Self::Dispatch => "dispatch",
            Self::DispatchOrRun => "dispatch, queue of 4",
            Self::SpawnBlocking => "spawn_blocking",
        }
    }
}

/// A strategy with the permits or threads that it needs. Clones share them.
#[derive(Clone)]
pub struct Blocking {
    strategy: Strategy,
    permits: Arc<Semaphore>,
    intrusive: Arc<IntrusiveSemaphore>,
    pool: Arc<Pool>,
}

impl Blocking {
    /// Starts a runtime and what the strategy needs beside it, with the numbers of threads that were published: `core`
    /// workers, and `extra` threads or permits. Where the workers block themselves, there are `core + extra` of them.
    ///
    /// # Errors
    ///
    /// When the system starts no more threads.
    pub fn start(strategy: Strategy, core: usize, extra: usize) -> io::Result<(Runtime, Self)> {
        let (workers, blocking, pool, queue) = match strategy {
            Strategy::Direct | Strategy::Permit | Strategy::IntrusivePermit => {
                (core + extra, core + extra, 0, 0)
            }
            Strategy::Dispatch => (core, 1, extra, LONG_QUEUE),
            Strategy::DispatchOrRun => (core, 1, extra, SHORT_QUEUE),
            Strategy::SpawnBlocking => (core, extra, 0, 0),
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(blocking)
            .enable_all()
            .build()?;
        let by = Self {
            strategy,
            permits: Arc::new(Semaphore::new(extra)),
            intrusive: Arc::new(IntrusiveSemaphore::new(true, extra)),
            pool: Arc::new(Pool::new(pool, queue)),
        };
        Ok((runtime, by))
    }

    /// Runs `work` by the strategy and returns its result.
    ///
    /// # Errors
    ///
    /// When the work panicked on another thread.
    pub async fn run<T, F>(&self, work: F) -> io::Result<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.strategy {
            Strategy::Direct => Ok(work()),
            Strategy::Permit => {
                let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
                Ok(block_in_place(work))
            }
            Strategy::IntrusivePermit => {
                let _permit = self.intrusive.acquire(1).await;
                Ok(block_in_place(work))
            }
            Strategy::Dispatch | Strategy::DispatchOrRun => self.pool.run(work).await,
            Strategy::SpawnBlocking => Ok(spawn_blocking(work).await?),
        }
    }

    /// Returns how many jobs callers of the pool ran themselves.
    pub fn run_by_callers(&self) -> u64 {
        self.pool.queue.by_callers.load(Ordering::Relaxed)
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads with a bounded queue. They end when the pool is dropped.
struct Pool {
    queue: Arc<Queue>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    length: usize,
    by_callers: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Pool {
    fn new(threads: usize, length: usize) -> Self {
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            length,
            by_callers: AtomicU64::new(0),
        });
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                while let Some(job) = queue.next() {
                    job();
                }
            });
        }
        Self { queue }
    }

    async fn run<T, F>(&self, work: F) -> io::Result<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (result, received) = oneshot::channel();
        self.queue.push(Box::new(move || {
            // A caller that has gone needs no result.
            let _ = result.send(work());
        }));
        match received.await {
            Ok(result) => Ok(result),
            Err(_) => Err(io::Error::other("the work panicked")),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job. If that is one too many, the caller runs the oldest.
    fn push(&self, job: Job) {
        let mut waiting = self.lock();
        waiting.jobs.push_back(job);
        if waiting.jobs.len() <= self.length {
            self.changed.notify_one();
            return;
        }
        let oldest = waiting.jobs.pop_front();
        drop(waiting);
        self.by_callers.fetch_add(1, Ordering::Relaxed);
        if let Some(job) = oldest {
            job();
        }
    }

    /// Waits for the next job. `None` when the pool has been dropped.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() && !waiting.is_closed {
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        waiting.jobs.pop_front()
    }
}

/// A timer of the runtime that goes off every 5 ms. A task that blocks its worker makes it late.
pub struct Timer {
    task: JoinHandle<()>,
    late_ms: Arc<Mutex<Vec<f64>>>,
}

impl Timer {
    /// Starts the timer on this runtime.
    pub fn start(runtime: &Runtime) -> Self {
        let late_ms = Arc::new(Mutex::new(Vec::new()));
        let ticks = Arc::clone(&late_ms);
        let task = runtime.spawn(async move {
            let mut due = Instant::now();
            loop {
                due += TICK;
                sleep_until(due).await;
                let late = due.elapsed().as_secs_f64() * 1e3;
                ticks
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(late);
            }
        });
        Self { task, late_ms }
    }

    /// Stops the timer and returns how late each tick was, in ms.
    pub fn stop(self) -> Vec<f64> {
        self.task.abort();
        let mut late = self.late_ms.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_finds_the_queue_full_runs_the_oldest_job() {
        let pool = Pool::new(0, 2);
        let ran = Arc::new(Mutex::new(Vec::new()));
        for number in 1..=3 {
            let ran = Arc::clone(&ran);
            pool.queue.push(Box::new(move || {
                ran.lock().unwrap().push(number);
            }));
        }
        assert_eq!(*ran.lock().unwrap(), [1]);
        assert_eq!(pool.queue.by_callers.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn every_strategy_returns_what_the_work_returned() {
        let strategies = [
            Strategy::Direct,
            Strategy::Permit,
            Strategy::IntrusivePermit,
            Strategy::Dispatch,
            Strategy::DispatchOrRun,
            Strategy::SpawnBlocking,
        ];
        for strategy in strategies {
            let (runtime, by) = Blocking::start(strategy, 1, 1).unwrap();
            let task = runtime.spawn(async move { by.run(|| 7).await });
            let result = runtime.block_on(task).unwrap();
            assert_eq!(result.unwrap(), 7, "{}", strategy.name());
        }
    }
}
