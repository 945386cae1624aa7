//! A service that stops for good under a few users: the guard of a map's entry is held across an await, and whoever
//! wants the same shard blocks its worker, until all are.
//!
//! Reports: xacrimon/dashmap#79, worldcoin/iris-mpc#959, pubky/pkdns#51.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use dashmap::DashMap;
use field::Arguments;

type Visits = Arc<DashMap<u32, u64>>;

/// Stands in for a call over the network.
async fn greet() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

async fn visit(State((visits, is_fixed)): State<(Visits, bool)>, Path(id): Path<u32>) -> String {
    let mut count = visits.entry(id).or_insert(0);
    *count += 1;
    if is_fixed {
        drop(count);
        greet().await;
    } else {
        // The fault: the shard stays locked meanwhile.
        greet().await;
        drop(count);
    }
    format!("visited {id}")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let state = (Visits::default(), arguments.fixed);
    let routes = Router::new()
        .route("/visit/{id}", get(visit))
        .with_state(state);
    field::serve(&arguments, routes).await
}
