//! A new connection for each call to another service: the answer's body is not read, so its connection cannot be used
//! again.
//!
//! Reports: hyperium/hyper#1353, getsentry/relay#1781.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use reqwest::Client;

#[derive(Clone)]
struct Upstream {
    client: Client,
    address: SocketAddr,
    is_fixed: bool,
}

async fn probe(State(upstream): State<Upstream>) -> Result<String, StatusCode> {
    let failed = |_| StatusCode::BAD_GATEWAY;
    let url = format!("http://{}/", upstream.address);
    let answer = upstream.client.get(url).send().await.map_err(failed)?;
    let status = answer.status();
    // The fault: only the status is of interest.
    if upstream.is_fixed {
        answer.bytes().await.map_err(failed)?;
    }
    Ok(format!("upstream says {status}"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let address = field::beside(async |listener| {
        let app = Router::new().route("/", get(async || "x".repeat(200_000)));
        axum::serve(listener, app).await
    });
    let upstream = Upstream {
        client: Client::new(),
        address,
        is_fixed: arguments.fixed,
    };
    let routes = Router::new().route("/probe", get(probe));
    field::serve(&arguments, routes.with_state(upstream)).await
}
