//! A limit of eight requests that limits nothing: axum makes the service of a router without state anew for each connection,
//! and with it the semaphore of `ConcurrencyLimitLayer`. With `--fixed` all of them share one.
//!
//! Report: tokio-rs/axum#2582.

use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{BoxError, ServiceBuilder};

/// Requests that are let in, which is as many as there are connections: none would have to wait for one.
const LIMIT: usize = 8;

/// Connections to a database.
static CONNECTIONS: Semaphore = Semaphore::const_new(LIMIT);

async fn quote() -> Result<&'static str, StatusCode> {
    let connection = CONNECTIONS.acquire().await;
    let _connection = connection.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok("quote")
}

async fn refuse(_: BoxError) -> StatusCode {
    StatusCode::SERVICE_UNAVAILABLE
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new().route("/quote", get(quote));
    let shed = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(refuse))
        .load_shed();
    let routes = if arguments.fixed {
        routes.layer(shed.layer(GlobalConcurrencyLimitLayer::new(LIMIT)))
    } else {
        routes.layer(shed.concurrency_limit(LIMIT))
    };
    field::serve(&arguments, routes).await
}
