//! Workers: threads that answer, each on a runtime of its own.

use std::sync::{Arc, Barrier, Mutex, PoisonError};

use axum::Router;
use lab::Connection;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Connections that may wait for one worker. A longer queue would only hide that it is behind.
const QUEUE: usize = 4;

/// The workers of a service and their queues. Clones are the same team.
///
/// This is where chapter 6 ended: workers share nothing but the main thread, which accepts
/// connections and gives them to one worker after the other.
#[derive(Debug, Clone)]
pub(crate) struct Team(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queues: Vec<Sender<Connection>>,
    /// The other ends, for workers that have not joined yet.
    vacancies: Mutex<Vec<Receiver<Connection>>>,
    ready: Barrier,
}

impl Team {
    /// A team that waits for so many workers.
    pub(crate) fn of(workers: usize) -> Self {
        let (queues, vacancies) = (0..workers).map(|_| channel(QUEUE)).unzip();
        Self(Arc::new(Shared {
            queues,
            vacancies: Mutex::new(vacancies),
            ready: Barrier::new(workers + 1),
        }))
    }

    /// Makes the calling thread a worker: it answers the connections of its queue until the process
    /// ends.
    pub(crate) fn join(&self, routes: &Router) {
        let vacancy = self
            .0
            .vacancies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        self.0.ready.wait();
        let (Some(queue), Ok(runtime)) =
            (vacancy, Builder::new_current_thread().enable_all().build())
        else {
            return;
        };
        runtime.block_on(answer(queue, routes));
    }

    /// Waits until every worker has joined, and with it has built what it needs. Yields the queue
    /// of each.
    pub(crate) fn wait(&self) -> Vec<Sender<Connection>> {
        self.0.ready.wait();
        self.0.queues.clone()
    }
}

async fn answer(mut queue: Receiver<Connection>, routes: &Router) {
    while let Some(connection) = queue.recv().await {
        tokio::spawn(connection.answer(routes.clone()));
    }
}
