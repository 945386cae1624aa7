//! What looks at the process does so from a thread of its own: it goes on while the service's runtime stands still,
//! and holds up nobody.

#[cfg(all(unix, feature = "cpu"))]
use std::sync::{Mutex as Lock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};

use crate::error::EndpointError;
use crate::permit;

/// How long something is to be looked at, or less where nobody waits for it any more.
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

    /// Sleeps so long, or until the end.
    pub(crate) fn sleep(&self, pause: Duration) {
        let until = self.end.min(Instant::now() + pause);
        while !self.is_over() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Does `look` for `duration` on a new thread of this name, if none of this kind is at it. Dropping the future ends it.
pub(crate) async fn look<T: Send + 'static>(
    kind: &'static str,
    one_at_a_time: &'static Mutex<()>,
    duration: Duration,
    look: impl FnOnce(&Until<'_>) -> T + Send + 'static,
) -> Result<T, EndpointError> {
    let permit = permit::take(one_at_a_time, kind)?;
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name(kind.to_owned())
        .spawn(move || {
            let seen = look(&Until::new(duration, &|| sender.is_closed()));
            drop(permit);
            let _ = sender.send(seen);
        })
        .map_err(EndpointError::failed)?;
    receiver.await.map_err(EndpointError::failed)
}

/// What takes long, and megabytes.
#[cfg(all(unix, feature = "cpu"))]
type Work = Box<dyn FnOnce() + Send>;

/// Does it for all profiles of a kind, once there is any: many allocators keep for a thread what it has freed.
#[cfg(all(unix, feature = "cpu"))]
pub(crate) struct OwnThread {
    name: &'static str,
    queue: Lock<Option<mpsc::Sender<Work>>>,
}

#[cfg(all(unix, feature = "cpu"))]
impl OwnThread {
    pub(crate) const fn new(name: &'static str) -> Self {
        let queue = Lock::new(None);
        Self { name, queue }
    }

    /// What `work` yields, which is told whether anybody still waits for that.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, EndpointError> {
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move || {
            let done = work(&|| !sender.is_closed());
            let _ = sender.send(done);
        });
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let unsent = match &*queue {
                Some(queue) => queue.send(work).err().map(|unsent| unsent.0),
                None => Some(work),
            };
            if let Some(work) = unsent {
                let (new, works) = mpsc::channel::<Work>();
                let thread = std::thread::Builder::new().name(self.name.to_owned());
                let thread = thread.spawn(move || works.into_iter().for_each(|work| work()));
                thread.map_err(EndpointError::failed)?;
                let _ = new.send(work);
                *queue = Some(new);
            }
        }
        receiver.await.map_err(EndpointError::failed)
    }
}
