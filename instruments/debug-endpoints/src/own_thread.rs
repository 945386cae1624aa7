//! Threads of the endpoints' own: they go on while the service's runtime is stalled, and do not hold it up.

use std::io;
use std::sync::{Mutex as Lock, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};

use crate::error::EndpointError;
use crate::memory_left;
use crate::own_status::{own_status, status_field};
use crate::permit;
use crate::runtimes;

/// End of an interval. It comes early if nobody waits for the result any more.
pub(crate) struct Until<'a> {
    pub(crate) end: Instant,
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> Until<'a> {
    pub(crate) fn new(duration: Duration, is_over: &'a dyn Fn() -> bool) -> Self {
        let end = Instant::now() + duration;
        Self { end, is_over }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end || (self.is_over)()
    }

    /// Sleeps for `pause`, or until the end.
    pub(crate) fn sleep(&self, pause: Duration) {
        let until = self.end.min(Instant::now() + pause);
        while !self.is_over() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Runs `look` for `duration` on a new thread named `kind`, one at a time. It ends early if the future is dropped.
///
/// # Errors
///
/// Returns an error if another look of this kind is running, or if no thread can be started.
pub(crate) async fn look<T: Send + 'static>(
    kind: &'static str,
    one_at_a_time: &'static Mutex<()>,
    duration: Duration,
    look: impl FnOnce(&Until<'_>) -> T + Send + 'static,
) -> Result<T, EndpointError> {
    let permit = permit::take(one_at_a_time, kind)?;
    let (sender, receiver) = oneshot::channel();
    let thread = Builder::new().name(kind.to_owned());
    let looking = thread.spawn(move || {
        let seen = look(&Until::new(duration, &|| sender.is_closed()));
        drop(permit);
        let _ = sender.send(seen);
    });
    looking.map_err(|error| no_thread(&error))?;
    receiver.await.map_err(EndpointError::failed)
}

/// Returns an error that says why the system starts no thread, and which name most threads of the process have.
pub(crate) fn no_thread(error: &io::Error) -> EndpointError {
    let most = match runtimes::threads_by_name() {
        Some((all, name, times)) => {
            format!(" This process has {all} threads, {times} of which are called `{name}`.")
        }
        None => String::new(),
    };
    EndpointError::Unavailable(format!(
        "this takes a thread, and the system starts none ({error}).{most} Look for what starts threads and does not end \
         them, or raise the limit: `ulimit -u`, or pids.max of the container. /debug/metrics needs no thread."
    ))
}

/// Answer of the system to the question whether it would start another thread now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Allowed,
    Refused,
    /// It started threads, and still counts them although they have ended. The next one may be refused.
    Unknown,
}

/// Longest time for which a thread that has been joined may still be counted. The system has to run it once more.
const STILL_COUNTED: Duration = Duration::from_millis(20);

/// Asks whether the system would start another thread now, for callers whose next step panics if it does not.
///
/// It starts two, so that one is left if somebody else takes one, and waits until the system no longer counts them.
pub(crate) fn try_start() -> Start {
    let before = own_threads();
    let (release, wait) = mpsc::channel();
    let Ok(first) = start_probe(wait) else {
        return Start::Refused;
    };
    let (release_second, wait) = mpsc::channel();
    let second = start_probe(wait);
    drop((release, release_second));
    let _ = first.join();
    let Ok(second) = second else {
        return Start::Refused;
    };
    let _ = second.join();
    let patience = Instant::now() + STILL_COUNTED;
    while own_threads() > before {
        if Instant::now() >= patience {
            return Start::Unknown;
        }
        std::thread::yield_now();
    }
    Start::Allowed
}

/// Starts a thread that ends when the sender of `wait` is dropped.
fn start_probe(wait: mpsc::Receiver<()>) -> io::Result<JoinHandle<()>> {
    let thread = Builder::new().name("probe".to_owned());
    thread.spawn(move || {
        let _ = wait.recv();
    })
}

/// Returns the number of threads of the process, as the system counts them.
fn own_threads() -> Option<f64> {
    status_field(&own_status()?, "Threads:")
}

/// Work that takes long, and megabytes of memory.
type Work = Box<dyn FnOnce() + Send>;

/// Thread that adds up what was seen and writes answers. One at a time, since each takes memory.
pub(crate) static DESK: OwnThread = OwnThread::new("debug-answers");

/// A thread for all work of a kind, started with the first work. A new thread for each work would cost memory: many
/// allocators keep what a thread has freed for that thread.
pub(crate) struct OwnThread {
    name: &'static str,
    queue: Lock<Option<mpsc::Sender<Work>>>,
}

impl OwnThread {
    pub(crate) const fn new(name: &'static str) -> Self {
        let queue = Lock::new(None);
        Self { name, queue }
    }

    /// Runs `work`, and has the allocator give back what it took. `work` gets a function that returns whether anybody
    /// still waits for its result.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started, or if `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, EndpointError> {
        let (sender, receiver) = oneshot::channel();
        self.send(Box::new(move || {
            let done = work(&|| !sender.is_closed());
            memory_left::give_back();
            let _ = sender.send(done);
        }))?;
        receiver.await.map_err(EndpointError::failed)
    }

    fn send(&self, mut work: Work) -> Result<(), EndpointError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = &*queue {
            match queue.send(work) {
                Ok(()) => return Ok(()),
                // The thread has ended, because earlier work panicked.
                Err(unsent) => work = unsent.0,
            }
        }
        let (new, works) = mpsc::channel::<Work>();
        let thread = Builder::new().name(self.name.to_owned());
        let working = thread.spawn(move || {
            for work in works {
                work();
            }
        });
        working.map_err(|error| no_thread(&error))?;
        let _ = new.send(work);
        *queue = Some(new);
        Ok(())
    }
}
