//! A request takes a second permit of one semaphore while it holds the first: once all hold one, nobody goes on.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;

#[derive(Clone)]
struct Mixer {
    channels: Arc<Semaphore>,
    is_fixed: bool,
}

async fn mix(State(mixer): State<Mixer>) -> Result<&'static str, StatusCode> {
    let none = |_| StatusCode::SERVICE_UNAVAILABLE;
    if mixer.is_fixed {
        let _both = mixer.channels.acquire_many(2).await.map_err(none)?;
        tokio::time::sleep(Duration::from_millis(4)).await;
        return Ok("mixed");
    }
    let _left = mixer.channels.acquire().await.map_err(none)?;
    tokio::time::sleep(Duration::from_millis(2)).await;
    // The fault: others hold one each, and wait here as well.
    let _right = mixer.channels.acquire().await.map_err(none)?;
    tokio::time::sleep(Duration::from_millis(2)).await;
    Ok("mixed")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let mixer = Mixer {
        channels: Arc::new(Semaphore::new(6)),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new().route("/mix", get(mix)).with_state(mixer);
    field::serve(&arguments, routes).await
}
