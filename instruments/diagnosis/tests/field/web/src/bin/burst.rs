//! Memory that stays: one report of many small rows, and the allocator keeps what was freed, because one row that
//! lives on lies above it.
//!
//! Reports: tokio-rs/axum#1724, shadowsocks/shadowsocks-rust#939.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;

type Row = Vec<u8>;
type Newest = Arc<Mutex<Option<Row>>>;

async fn report(State((newest, is_fixed)): State<(Newest, bool)>) -> String {
    let row = |number: u32| vec![number.to_le_bytes()[0]; 1000];
    let (count, last) = if is_fixed {
        // A row at a time.
        (0..200_000)
            .map(row)
            .fold((0, None), |(count, _), row| (count + 1, Some(row)))
    } else {
        let rows: Vec<Row> = (0..200_000).map(row).collect();
        (rows.len(), rows.into_iter().last())
    };
    *newest.lock().unwrap_or_else(PoisonError::into_inner) = last;
    format!("{count} rows")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let state = (Newest::default(), arguments.fixed);
    let routes = Router::new()
        .route("/report", get(report))
        .with_state(state);
    field::serve(&arguments, routes).await
}
