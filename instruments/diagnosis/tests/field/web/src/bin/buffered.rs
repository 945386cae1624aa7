//! Connections that are held and not used: futures in `buffered` are polled while the stream is asked for its next item,
//! and stand still while the loop's body awaits.
//!
//! Report: rust-lang/futures-rs#2387.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::{AcquireError, Semaphore};

type Pool = Arc<Semaphore>;

/// Holds one of the pool's connections until it is finished.
async fn select(pool: Pool, row: u32) -> Result<u32, AcquireError> {
    let _connection = pool.acquire().await?;
    tokio::time::sleep(Duration::from_millis(2)).await;
    Ok(row)
}

async fn process(_: u32) {
    tokio::time::sleep(Duration::from_millis(15)).await;
}

async fn process_all(pool: Pool, is_fixed: bool) -> Result<u32, AcquireError> {
    let rows = stream::iter(0..4).map(|row| select(pool.clone(), row));
    let mut count = 0;
    if is_fixed {
        for row in rows.buffered(4).try_collect::<Vec<_>>().await? {
            process(row).await;
            count += 1;
        }
    } else {
        let mut rows = rows.buffered(2);
        while let Some(row) = rows.next().await {
            // The fault: the next `select` stands still meanwhile, with its connection.
            process(row?).await;
            count += 1;
        }
    }
    Ok(count)
}

async fn batch(State((pool, is_fixed)): State<(Pool, bool)>) -> Result<String, StatusCode> {
    let count = process_all(pool, is_fixed).await;
    let count = count.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("{count} items"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let state = (Arc::new(Semaphore::new(3)), arguments.fixed);
    let routes = Router::new().route("/batch", get(batch)).with_state(state);
    field::serve(&arguments, routes).await
}
