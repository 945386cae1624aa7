//! An answer that is ready and comes 20 ms later: the task that has it wakes the handler and goes on computing, and the
//! task that a worker woke last stands in a slot from which no other worker takes it.
//!
//! Report: tokio-rs/tokio#4941.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::oneshot::{self, Sender};

/// Work after the answer.
fn keep_accounts() {
    field::compute(Duration::from_millis(20));
}

fn price(answer: Sender<u64>, is_fixed: bool) {
    // Whoever asked may be gone.
    let _ = answer.send(42);
    if is_fixed {
        tokio::task::spawn_blocking(keep_accounts);
    } else {
        // The fault: the handler that was woken stands on this worker.
        keep_accounts();
    }
}

async fn quote(State(is_fixed): State<bool>) -> Result<String, StatusCode> {
    let (answer, price_of_it) = oneshot::channel();
    tokio::spawn(async move { price(answer, is_fixed) });
    let price = price_of_it
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("price {price}"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new().route("/quote", get(quote));
    field::serve(&arguments, routes.with_state(arguments.fixed)).await
}
