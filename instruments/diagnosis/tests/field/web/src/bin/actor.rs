//! An actor that does one job after the other, although each of them only waits.
//!
//! Report: fedimint/fedimint#1530. Nobody holds a lock: the queue is the actor's mailbox.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{mpsc, oneshot};

type Job = oneshot::Sender<u32>;

async fn ask_supplier(job: Job) {
    tokio::time::sleep(Duration::from_millis(4)).await;
    // Whoever asked may have gone.
    let _ = job.send(7);
}

async fn run(mut jobs: mpsc::Receiver<Job>, is_fixed: bool) {
    while let Some(job) = jobs.recv().await {
        if is_fixed {
            tokio::spawn(ask_supplier(job));
        } else {
            // The fault: the next job waits meanwhile.
            ask_supplier(job).await;
        }
    }
}

async fn price(State(actor): State<mpsc::Sender<Job>>) -> Result<String, StatusCode> {
    let (job, price) = oneshot::channel();
    let sent = actor.send(job).await;
    sent.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let price = price.await;
    let price = price.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(price.to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (actor, jobs) = mpsc::channel(100);
    tokio::spawn(run(jobs, arguments.fixed));
    let routes = Router::new().route("/price", get(price)).with_state(actor);
    field::serve(&arguments, routes).await
}
