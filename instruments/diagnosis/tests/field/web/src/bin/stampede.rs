//! An entry of a cache expires, and all requests that miss it make it anew at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{Mutex, RwLock};

/// Time for which an entry lives.
const LIVES: Duration = Duration::from_millis(300);

struct Stats {
    client: reqwest::Client,
    url: String,
    cache: RwLock<Option<(Instant, String)>>,
    flight: Mutex<()>,
    is_fixed: bool,
}

impl Stats {
    async fn cached(&self) -> Option<String> {
        let cache = self.cache.read().await;
        let (made, text) = cache.as_ref()?;
        (made.elapsed() < LIVES).then(|| text.clone())
    }

    async fn compute(&self) -> reqwest::Result<String> {
        // The fault: nobody sees that another request asks for the same.
        let text = self.client.get(&self.url).send().await?.text().await?;
        *self.cache.write().await = Some((Instant::now(), text.clone()));
        Ok(text)
    }
}

async fn stats(State(stats): State<Arc<Stats>>) -> Result<String, StatusCode> {
    if let Some(text) = stats.cached().await {
        return Ok(text);
    }
    let mut _flight = None;
    if stats.is_fixed {
        _flight = Some(stats.flight.lock().await);
        if let Some(text) = stats.cached().await {
            return Ok(text);
        }
    }
    stats.compute().await.map_err(|_| StatusCode::BAD_GATEWAY)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let upstream = field::answering_after(Duration::from_millis(150));
    let stats_of_shop = Arc::new(Stats {
        client: reqwest::Client::new(),
        url: format!("http://{upstream}/"),
        cache: RwLock::default(),
        flight: Mutex::default(),
        is_fixed: arguments.fixed,
    });
    let routes = Router::new()
        .route("/stats", get(stats))
        .with_state(stats_of_shop);
    field::serve(&arguments, routes).await?;
    Ok(())
}
