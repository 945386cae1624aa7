//! A name is looked up by a call that blocks a worker, for each request.
//!
//! Report: paritytech/jsonrpsee#1642. The name is the machine's own; how long that takes is its resolver's affair.

use std::net::{SocketAddr, ToSocketAddrs};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;

/// Looked up so many times for a request, as a client for several services does.
const NAMES: usize = 40;

async fn quote(State(is_fixed): State<bool>) -> Result<String, StatusCode> {
    let mut found = Vec::<SocketAddr>::new();
    for port in 1..=NAMES {
        let name = format!("rates-{port}.test:80");
        if is_fixed {
            found.extend(tokio::net::lookup_host(name).await.into_iter().flatten());
        } else {
            // The fault: it blocks the worker.
            found.extend(name.to_socket_addrs().into_iter().flatten());
        }
    }
    Ok(found.len().to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new()
        .route("/quote", get(quote))
        .with_state(arguments.fixed);
    field::serve(&arguments, routes).await
}
