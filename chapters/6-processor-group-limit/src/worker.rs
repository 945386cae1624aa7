//! Workers: each a runtime and a web server for one thread, and the queue that feeds it.

use std::io;

use axum::Router;
use lab::{Connection, Lab, Options};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::service::routes;
use crate::texts::Texts;

/// Connections that may wait for one worker. In a longer queue they would wait for a slow worker while
/// another one is idle.
const QUEUE: usize = 4;

/// Where the main thread puts a worker's connections.
pub(crate) type Queue = Sender<Connection>;

// ANCHOR: worker
/// Everything that a thread needs to answer alone. Nothing of a connection ever leaves the thread.
pub(crate) struct Worker {
    runtime: Runtime,
    routes: Router,
    connections: Receiver<Connection>,
}

impl Worker {
    /// A worker without a thread yet, and its queue.
    pub(crate) fn new(texts: &Texts) -> io::Result<(Queue, Self)> {
        let (queue, connections) = mpsc::channel(QUEUE);
        let worker = Self {
            runtime: Builder::new_current_thread().enable_all().build()?,
            routes: routes(texts.clone()),
            connections,
        };
        Ok((queue, worker))
    }

    /// Answers on the calling thread until the queue is gone.
    pub(crate) fn run(self) {
        let Self {
            runtime,
            routes,
            mut connections,
        } = self;
        runtime.block_on(async {
            while let Some(connection) = connections.recv().await {
                tokio::spawn(connection.answer(routes.clone()));
            }
        });
    }
}
// ANCHOR_END: worker

/// Accepts on this thread, and has the workers answer that `start` starts.
pub(crate) fn serve(
    options: Options,
    texts: &Texts,
    start: fn(&Texts) -> io::Result<Vec<Queue>>,
) -> Result<(), lab::Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.dispatch(start(texts)?).await
    })
}
