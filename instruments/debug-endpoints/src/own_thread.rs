//! A thread for what takes long, and megabytes.

use std::sync::{Mutex, PoisonError, mpsc};

use tokio::sync::oneshot;

use crate::error::EndpointError;

type Work = Box<dyn FnOnce() + Send>;

/// Does it for all profiles of a kind, once there is any: many allocators keep for a thread what it has freed.
pub(crate) struct OwnThread {
    name: &'static str,
    queue: Mutex<Option<mpsc::Sender<Work>>>,
}

impl OwnThread {
    pub(crate) const fn new(name: &'static str) -> Self {
        let queue = Mutex::new(None);
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
