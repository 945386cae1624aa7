//! `select_all` in a loop polls each future for every one that is ready.
//!
//! Reports: rust-lang/futures-rs#2201, #1603, tokio-rs/tokio#2401.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use field::Arguments;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

const SHARDS: u64 = 1_000;

async fn shard(number: u64) -> u64 {
    tokio::time::sleep(Duration::from_millis(5 + number % 40)).await;
    number
}

async fn fan(State(is_fixed): State<bool>, Path(id): Path<u64>) -> String {
    let mut sum = 0;
    if is_fixed {
        let mut all: FuturesUnordered<_> = (0..SHARDS).map(|number| shard(number + id)).collect();
        while let Some(number) = all.next().await {
            sum += number;
        }
    } else {
        let mut left: Vec<_> = (0..SHARDS)
            .map(|number| shard(number + id).boxed())
            .collect();
        while !left.is_empty() {
            // The fault: all that are left are polled again.
            let (number, _, rest) = futures::future::select_all(left).await;
            sum += number;
            left = rest;
        }
    }
    sum.to_string()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new()
        .route("/fan/{id}", get(fan))
        .with_state(arguments.fixed);
    field::serve(&arguments, routes).await
}
