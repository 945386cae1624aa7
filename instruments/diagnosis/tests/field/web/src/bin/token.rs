//! A token that is never renewed: whoever finds it expired renews it under a lock, and the time limit of the request cancels
//! that. With `--fixed` a task renews it, which no request cancels.
//!
//! A neighbour of `rerank`, with a lock in place of a cell.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

struct Tokens {
    token: Mutex<Option<u64>>,
    fixed: bool,
}

/// Logs in at another service, which is slow today.
async fn log_in() -> u64 {
    sleep(Duration::from_millis(900)).await;
    7
}

async fn renewed(tokens: Arc<Tokens>) -> u64 {
    let mut token = tokens.token.lock().await;
    match *token {
        Some(token) => token,
        None => *token.insert(log_in().await),
    }
}

async fn current(tokens: Arc<Tokens>) -> u64 {
    if tokens.fixed {
        return tokio::spawn(renewed(tokens)).await.unwrap_or_default();
    }
    renewed(tokens).await
}

async fn report(State(tokens): State<Arc<Tokens>>) -> Result<String, StatusCode> {
    let token = timeout(Duration::from_millis(300), current(tokens)).await;
    let token = token.map_err(|_| StatusCode::GATEWAY_TIMEOUT)?;
    sleep(Duration::from_millis(5)).await;
    Ok(token.to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let tokens = Arc::new(Tokens {
        token: Mutex::new(None),
        fixed: arguments.fixed,
    });
    let app = Router::new()
        .route("/report", get(report))
        .with_state(tokens);
    field::serve(&arguments, app).await
}
