//! An axum service with the profiler, and a page that shows what it waits for.
//!
//! ```text
//! cargo run --example axum_service
//! curl http://127.0.0.1:3000/greet/you &
//! curl -o waits.svg 'http://127.0.0.1:3000/debug/await?seconds=5'
//! ```

use std::time::Duration;

use await_profile::{AwaitProfiler, FlamegraphOptions, Label, ProfileOptions};
use axum::Router;
use axum::extract::{MatchedPath, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

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

/// The route's pattern, so that `/greet/you` and `/greet/me` are one route.
fn route(request: &Request) -> Label {
    let route = request.extensions().get::<MatchedPath>();
    Label::new(route.map_or("(none)", MatchedPath::as_str))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let profiler = AwaitProfiler::new().armed();
    let app = Router::new()
        .route("/greet/{name}", get(greet))
        .layer(profiler.layer_named(route))
        // Below the layer, and so not in the picture itself.
        .route("/debug/await", get(waits).with_state(profiler));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await
}
