//! A request that stores its rows one by one: each waits for the storage's answer before the next is sent. With `--fixed` all are
//! sent, and then their answers awaited.
//!
//! A neighbour of `ingest`, within a request.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

/// Rows of a request.
const ROWS: u64 = 20;

type Row = (u64, oneshot::Sender<u64>);

/// Stores what has come, two milliseconds at a time.
async fn store(mut rows: mpsc::Receiver<Row>) {
    let mut batch = Vec::new();
    while rows.recv_many(&mut batch, 500).await > 0 {
        sleep(Duration::from_millis(2)).await;
        for (row, done) in batch.drain(..) {
            let _ = done.send(row);
        }
    }
}

async fn send(storage: &mpsc::Sender<Row>, row: u64) -> oneshot::Receiver<u64> {
    let (done, stored) = oneshot::channel();
    let _ = storage.send((row, done)).await;
    stored
}

async fn import(storage: mpsc::Sender<Row>, fixed: bool) -> String {
    let mut sum = 0;
    if fixed {
        let mut pending = Vec::new();
        for row in 0..ROWS {
            pending.push(send(&storage, row).await);
        }
        for stored in pending {
            sum += stored.await.unwrap_or_default();
        }
    } else {
        for row in 0..ROWS {
            sum += send(&storage, row).await.await.unwrap_or_default();
        }
    }
    sum.to_string()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (storage, rows) = mpsc::channel(1000);
    tokio::spawn(store(rows));
    let fixed = arguments.fixed;
    let app = Router::new().route("/import", get(move || import(storage.clone(), fixed)));
    field::serve(&arguments, app).await
}
