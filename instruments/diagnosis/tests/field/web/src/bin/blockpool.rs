//! Quick reads of files that take 700 ms: the blocking pool is full of long jobs, and `tokio::fs` needs the same pool.
//!
//! Reports: actix/actix-web#2443, actix/actix-web#1725, tokio-rs/tokio#5777.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;

/// Threads of the blocking pool: few, so that few users fill it. Tokio's default is 512.
const THREADS: usize = 8;

/// An old client of another service, which knows no `async`.
fn export_all() -> &'static str {
    std::thread::sleep(Duration::from_millis(250));
    "exported"
}

async fn export(State(at_once): State<Arc<Semaphore>>) -> Result<&'static str, StatusCode> {
    let failed = StatusCode::INTERNAL_SERVER_ERROR;
    let _permit = at_once.acquire().await.map_err(|_| failed)?;
    tokio::task::spawn_blocking(export_all)
        .await
        .map_err(|_| failed)
}

async fn page() -> Result<Vec<u8>, StatusCode> {
    tokio::fs::read("/etc/hostname")
        .await
        .map_err(|_| StatusCode::NOT_FOUND)
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    // The fault: nothing keeps exports from taking all threads.
    let at_once = if arguments.fixed {
        THREADS / 2
    } else {
        Semaphore::MAX_PERMITS
    };
    let routes = Router::new()
        .route("/export", get(export))
        .with_state(Arc::new(Semaphore::new(at_once)))
        .route("/page", get(page));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(THREADS).build()?;
    runtime.block_on(field::serve(&arguments, routes))
}
