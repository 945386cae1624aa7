//! Permits that are forgotten on the way of an error: after some errors nobody gets one any more.
//!
//! Reports: anza-xyz/agave#10478, apache/solr#4236.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;

/// Pages that are rendered at a time.
const AT_A_TIME: usize = 16;
/// One of so many is not there.
const MISSING: u64 = 20;

#[derive(Clone)]
struct Renderer {
    permits: Arc<Semaphore>,
    asked: Arc<AtomicU64>,
    is_fixed: bool,
}

async fn render(State(renderer): State<Renderer>) -> Result<&'static str, StatusCode> {
    let permit = renderer.permits.acquire().await;
    let permit = permit.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let asked = renderer.asked.fetch_add(1, Ordering::Relaxed);
    if asked % MISSING == MISSING - 1 {
        if !renderer.is_fixed {
            // The fault: meant for a permit that somebody else gives back.
            permit.forget();
        }
        return Err(StatusCode::NOT_FOUND);
    }
    Ok("a page")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let renderer = Renderer {
        permits: Arc::new(Semaphore::new(AT_A_TIME)),
        asked: Arc::default(),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/render", get(render))
        .with_state(renderer);
    field::serve(&arguments, routes).await
}
