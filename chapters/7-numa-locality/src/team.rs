//! Workers: threads that answer, each on a runtime of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};

use axum::Router;
use futures_util::future::select_ok;
use lab::Connection;
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Connections that may wait for one worker. More would only hide that it is behind.
const QUEUE: usize = 4;

/// The workers of a service, and the way to them. Clones are the same team.
///
/// This is where chapter 6 ended: a worker shares nothing with another one but the main thread,
/// which accepts connections and hands them out in turn.
#[derive(Debug, Clone)]
pub struct Team(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queues: Vec<Sender<Connection>>,
    /// The other ends, for workers that have not joined yet.
    vacancies: Mutex<Vec<Receiver<Connection>>>,
    everybody: Barrier,
    turn: AtomicUsize,
}

impl Team {
    /// A team that waits for so many workers.
    pub fn of(workers: usize) -> Self {
        let (queues, vacancies) = (0..workers).map(|_| channel(QUEUE)).unzip();
        Self(Arc::new(Shared {
            queues,
            vacancies: Mutex::new(vacancies),
            everybody: Barrier::new(workers + 1),
            turn: AtomicUsize::new(0),
        }))
    }

    /// The calling thread becomes a worker: it answers what it is handed, for as long as the team
    /// lives.
    pub fn join(&self, routes: &Router) {
        let vacancy = self
            .0
            .vacancies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        self.0.everybody.wait();
        let (Some(queue), Ok(runtime)) =
            (vacancy, Builder::new_current_thread().enable_all().build())
        else {
            return;
        };
        runtime.block_on(answer(queue, routes));
    }

    /// Waits until every worker has joined, and with it has built what it needs.
    pub fn wait(&self) {
        self.0.everybody.wait();
    }

    /// Hands a connection to the next worker whose queue has room, so that one that is behind keeps
    /// nobody waiting but its own clients. If all queues are full, whichever has room first gets it.
    pub async fn give(&self, mut connection: Connection) {
        let queues = &self.0.queues;
        let first = self.0.turn.fetch_add(1, Ordering::Relaxed);
        for turn in first..first + queues.len() {
            match queues[turn % queues.len()].try_send(connection) {
                Ok(()) => return,
                Err(TrySendError::Full(back) | TrySendError::Closed(back)) => connection = back,
            }
        }
        let rooms = queues.iter().map(|queue| Box::pin(queue.reserve()));
        // Without a worker left there is nobody to answer: the connection closes.
        if let Ok((room, _)) = select_ok(rooms).await {
            room.send(connection);
        }
    }
}

async fn answer(mut queue: Receiver<Connection>, routes: &Router) {
    while let Some(connection) = queue.recv().await {
        tokio::spawn(connection.answer(routes.clone()));
    }
}
