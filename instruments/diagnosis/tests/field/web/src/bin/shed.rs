//! Answers of 503 by design: a service that refuses what it has no room for; with `--fixed` it has room for all.
//!
//! Reports: blockfrost/blockfrost-platform#409, getsentry/objectstore#562.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;

async fn work(State(room): State<Arc<Semaphore>>) -> Result<&'static str, StatusCode> {
    let _permit = room
        .try_acquire()
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    tokio::time::sleep(Duration::from_millis(10)).await;
    Ok("done")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let room = Arc::new(Semaphore::new(if arguments.fixed { 1_000 } else { 20 }));
    let routes = Router::new().route("/work", get(work)).with_state(room);
    field::serve(&arguments, routes).await
}
