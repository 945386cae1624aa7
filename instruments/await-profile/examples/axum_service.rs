//! An axum service with the profiler, and a page that shows what it waits for.
//!
//! ```text
//! cargo run --example axum_service --features axum
//! curl http://127.0.0.1:3000/greet/you &
//! curl -o waits.svg 'http://127.0.0.1:6060/debug/await?seconds=5'
//! ```
//!
//! A profile shows the names of functions and routes, and taking one costs something. So this
//! service offers it on a listener of its own, on the loopback interface, which only the machine
//! itself can reach. Do not put it on a public listener, unless you guard it like your other
//! internal pages.

use std::time::Duration;

use await_profile::{AwaitProfiler, FlamegraphOptions, MatchedRoute, ProfileOptions};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

async fn greet(Path(name): Path<String>) -> String {
    tokio::time::sleep(Duration::from_millis(50)).await;
    format!("hello, {name}")
}

#[derive(serde::Deserialize)]
struct Window {
    seconds: Option<u64>,
}

async fn waits(
    State(profiler): State<AwaitProfiler>,
    Query(window): Query<Window>,
) -> impl IntoResponse {
    let seconds = window.seconds.unwrap_or(5).clamp(1, 60);
    let profile = profiler
        .profile(ProfileOptions::lasting(Duration::from_secs(seconds)))
        .await;
    let profile = profile.map_err(|error| (StatusCode::CONFLICT, error.to_string()))?;
    let svg = profile.flamegraph(&FlamegraphOptions::default());
    svg.map(|svg| ([(header::CONTENT_TYPE, "image/svg+xml")], svg))
        .map_err(|error| (StatusCode::NOT_FOUND, error.to_string()))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let profiler = AwaitProfiler::new().armed();
    let app = Router::new()
        .route("/greet/{name}", get(greet))
        // `/greet/you` and `/greet/me` are one route, and so are all paths that do not exist.
        .layer(profiler.layer_named(MatchedRoute));
    let debug = Router::new().route("/debug/await", get(waits).with_state(profiler));

    let app_listener = TcpListener::bind("127.0.0.1:3000").await?;
    let debug_listener = TcpListener::bind("127.0.0.1:6060").await?;
    tokio::try_join!(
        axum::serve(app_listener, app).into_future(),
        axum::serve(debug_listener, debug).into_future(),
    )?;
    Ok(())
}
