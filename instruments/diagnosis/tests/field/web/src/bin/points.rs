//! A timer that never fires: `select!` makes it anew with each message, so a batch is written only when it is full. With
//! `--fixed` the timer is made once, before the loop.
//!
//! Samples of the service itself come more often than the timer would fire.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{interval, sleep};

/// Points of a full batch.
const BATCH: usize = 100;
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// Time between two samples of the service itself.
const SAMPLED_EVERY: Duration = Duration::from_millis(20);

/// A point, and who waits until it is written, if anyone does.
type Point = (u64, Option<oneshot::Sender<u64>>);

/// Stands for a file: writes a batch, and lets those go who wait for it.
async fn write(batch: &mut Vec<Point>) {
    sleep(Duration::from_millis(1)).await;
    for (point, waiting) in batch.drain(..) {
        if let Some(waiting) = waiting {
            let _ = waiting.send(point);
        }
    }
}

async fn collect(mut points: mpsc::Receiver<Point>, fixed: bool) {
    let mut batch = Vec::new();
    let mut ticks = interval(FLUSH_EVERY);
    loop {
        tokio::select! {
            point = points.recv() => {
                let Some(point) = point else { break };
                batch.push(point);
                if batch.len() >= BATCH {
                    write(&mut batch).await;
                }
            }
            // The fault: each message begins this time anew.
            () = sleep(FLUSH_EVERY), if !fixed => write(&mut batch).await,
            _ = ticks.tick(), if fixed => write(&mut batch).await,
        }
    }
}

async fn sample(points: mpsc::Sender<Point>) {
    while points.send((7, None)).await.is_ok() {
        sleep(SAMPLED_EVERY).await;
    }
}

async fn store(points: mpsc::Sender<Point>) -> Result<String, StatusCode> {
    let (written, done) = oneshot::channel();
    let sent = points.send((1, Some(written))).await;
    sent.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let point = done.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(point.to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (points, received) = mpsc::channel(1_000);
    tokio::spawn(collect(received, arguments.fixed));
    tokio::spawn(sample(points.clone()));
    let app = Router::new().route("/point", get(move || store(points.clone())));
    field::serve(&arguments, app).await
}
