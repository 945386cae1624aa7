//! Workers: each a runtime and a web server for one thread, and the queue that feeds it.

use std::{io, thread};

use axum::Router;
use lab::{Connection, Lab, Options};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::service::routes;
use crate::texts::Texts;

/// Connections that may wait for one worker. In a longer queue they would wait for a slow worker while
/// another one is idle.
pub(crate) const QUEUE: usize = 4;

/// Queue into which the main thread puts a worker's connections.
pub(crate) type Queue = Sender<Connection>;

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

// ANCHOR: start_workers
/// Starts `count` workers, whose threads may run where the calling one may.
pub(crate) fn start_workers(count: usize, texts: &Texts) -> io::Result<Vec<Queue>> {
    (0..count)
        .map(|_| {
            let (queue, worker) = Worker::new(texts)?;
            thread::spawn(|| worker.run());
            Ok(queue)
        })
        .collect()
}
// ANCHOR_END: start_workers

// ANCHOR: pin
/// Pins the calling thread to the first CPU that it may use. The network card interrupts that one, so
/// a new connection is accepted where its packets are.
pub(crate) fn pin_to_first_cpu() {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    if let Some(&first) = cores.first() {
        core_affinity::set_for_current(first);
    }
}
// ANCHOR_END: pin

/// Accepts on this thread, and has the workers answer that `start` starts.
pub(crate) fn serve(
    options: Options,
    texts: &Texts,
    start: fn(&Texts) -> io::Result<Vec<Queue>>,
) -> Result<(), lab::Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let side_by_side = options.side_by_side();
        let lab = Lab::open(options)?;
        let queues = if side_by_side {
            start_side_by_side(texts, start)?
        } else {
            start(texts)?
        };
        lab.dispatch(queues).await
    })
}

/// Starts workers once for each CPU, from a thread that is pinned to it: what as many processes would
/// do that have a CPU each.
fn start_side_by_side(
    texts: &Texts,
    start: fn(&Texts) -> io::Result<Vec<Queue>>,
) -> io::Result<Vec<Queue>> {
    let mut queues = Vec::new();
    for core in core_affinity::get_core_ids().unwrap_or_default() {
        let started = thread::scope(|scope| {
            let pinned = scope.spawn(|| {
                core_affinity::set_for_current(core);
                start(texts)
            });
            pinned.join()
        });
        queues.extend(started.map_err(|_| io::Error::other("a start of workers panicked"))??);
    }
    Ok(queues)
}
