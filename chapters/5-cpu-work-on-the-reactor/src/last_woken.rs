//! A handler that sends to another task, and computes: the task that a worker woke last cannot be stolen.
//!
//! Three variants differ in the moment at which they send. The other task also answers pings, so that a ping tells how
//! long it was kept from running.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get};
use lab::Work;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// Lines that may wait for the journal.
const QUEUE: usize = 1024;

/// `GET /data` sends a line to the journal and computes, `GET /ping` asks the journal.
pub(crate) fn send_first(work: Work) -> Router {
    routes(get(data_after_sending), work)
}

/// The same, and the handler yields after it has sent.
pub(crate) fn send_then_yield(work: Work) -> Router {
    routes(get(data_after_yielding), work)
}

/// The same, and the handler computes before it sends.
pub(crate) fn send_last(work: Work) -> Router {
    routes(get(data_before_sending), work)
}

fn routes(data: MethodRouter<Service>, work: Work) -> Router {
    let (journal, lines) = mpsc::channel(QUEUE);
    tokio::spawn(keep(lines));
    Router::new()
        .route("/data", data)
        .route("/ping", get(ping))
        .with_state(Service { work, journal })
}

#[derive(Clone)]
struct Service {
    work: Work,
    journal: Sender<Line>,
}

/// A message to the journal.
enum Line {
    /// A request for data.
    Data,
    /// A ping, which the journal answers.
    Ping(oneshot::Sender<&'static str>),
}

/// The journal's task, which keeps no lines and never computes: all that can be late is its turn.
async fn keep(mut lines: Receiver<Line>) {
    while let Some(line) = lines.recv().await {
        if let Line::Ping(reply) = line {
            // A client who has left needs no answer.
            let _ = reply.send("pong");
        }
    }
}

// ANCHOR: first
async fn data_after_sending(State(service): State<Service>) -> String {
    // Wakes the journal's task, which goes to this worker's LIFO slot.
    let _ = service.journal.send(Line::Data).await;
    service.work.run().to_string()
}
// ANCHOR_END: first

// ANCHOR: remedies
async fn data_before_sending(State(service): State<Service>) -> String {
    let result = service.work.run();
    let _ = service.journal.send(Line::Data).await;
    result.to_string()
}

async fn data_after_yielding(State(service): State<Service>) -> String {
    let _ = service.journal.send(Line::Data).await;
    // This worker runs the journal's task, then this one again.
    yield_now().await;
    service.work.run().to_string()
}
// ANCHOR_END: remedies

async fn ping(State(service): State<Service>) -> Result<&'static str, StatusCode> {
    let (reply, answer) = oneshot::channel();
    let sent = service.journal.send(Line::Ping(reply)).await;
    sent.map_err(|_ended| StatusCode::SERVICE_UNAVAILABLE)?;
    answer
        .await
        .map_err(|_ended| StatusCode::SERVICE_UNAVAILABLE)
}
