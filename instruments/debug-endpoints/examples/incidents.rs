//! An axum service that records incidents, and now and then has one.
//!
//! ```sh
//! cargo run --release -p debug-endpoints --example incidents
//! curl http://127.0.0.1:8080/stall       # a worker sleeps for 300 ms in a call
//! curl http://127.0.0.1:8080/deadlock    # a worker never comes back; after another one, none is left
//! curl http://127.0.0.1:6060/debug/incidents
//! ```

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use debug_endpoints::{DebugEndpoints, Incidents};
use tokio::net::TcpListener;

/// An ordinary request.
async fn item() -> &'static str {
    tokio::time::sleep(Duration::from_millis(5)).await;
    "tea"
}

/// Blocks its worker for 300 ms, as a call to a slow disk or a name lookup does.
async fn stall() -> &'static str {
    thread::sleep(Duration::from_millis(300));
    "sorry"
}

/// Moves one from an account to another, which deadlocks if they are the same.
fn transfer(from: &Mutex<u64>, to: &Mutex<u64>) {
    let mut from = from.lock().unwrap_or_else(PoisonError::into_inner);
    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
    (*from, *to) = (from.saturating_sub(1), *to + 1);
}

static TEA: Mutex<u64> = Mutex::new(100);

/// Blocks its worker for good.
async fn deadlock() -> &'static str {
    transfer(&TEA, &TEA);
    "never"
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let incidents = Incidents::new().p99_limit(Duration::from_millis(500));
    let debug = DebugEndpoints::new().record_incidents(incidents);
    let admin = debug
        .listen("127.0.0.1:6060")
        .map_err(std::io::Error::other)?;
    let app = Router::new()
        .route("/item", get(item))
        .route("/stall", get(stall))
        .route("/deadlock", get(deadlock))
        .layer(debug.layer());
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("incidents are at http://{admin}/debug/incidents");
    axum::serve(listener, app).await
}
