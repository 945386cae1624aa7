//! The isolated worker in tokio's plain form: a `LocalRuntime`, whose tasks never leave their thread.

use std::io;
use std::thread::{self, available_parallelism};

use axum::Router;
use lab::Connection;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::spawn_local;

use crate::service::routes;
use crate::texts::Texts;
use crate::worker::{QUEUE, Queue, pin_to_first_cpu};

/// Starts a worker for each CPU, from the thread that accepts.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    let cpus = available_parallelism().map_or(1, usize::from);
    let mut queues = Vec::new();
    for _ in 0..cpus {
        let (queue, connections) = mpsc::channel(QUEUE);
        let routes = routes(texts.clone());
        thread::Builder::new().spawn(move || run(connections, &routes))?;
        queues.push(queue);
    }
    pin_to_first_cpu();
    Ok(queues)
}

// ANCHOR: run
/// Answers on the calling thread until the queue is gone.
fn run(mut connections: Receiver<Connection>, routes: &Router) -> io::Result<()> {
    // Made on the thread where it runs, because it cannot move to another one.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        while let Some(connection) = connections.recv().await {
            // The future need not be `Send`: it may hold an `Rc` or a `RefCell`.
            spawn_local(connection.answer(routes.clone()));
        }
    });
    Ok(())
}
// ANCHOR_END: run
