//! A client keeps no connection, so each call looks the name up again, in the blocking pool.
//!
//! Reports: constellation-rs/amadeus#81, seanmonstar/reqwest#915.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;

#[derive(Clone)]
struct Rates {
    client: reqwest::Client,
    url: String,
}

async fn quote(State(rates): State<Rates>) -> Result<String, StatusCode> {
    let answer = rates.client.get(&rates.url).send().await;
    let answer = answer.map_err(|_| StatusCode::BAD_GATEWAY)?.text().await;
    answer.map_err(|_| StatusCode::BAD_GATEWAY)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let upstream = field::answering_after(Duration::from_millis(2));
    // The fault: none is kept.
    let idle = if arguments.fixed { 64 } else { 0 };
    let client = reqwest::Client::builder()
        .pool_max_idle_per_host(idle)
        .build()?;
    let url = format!("http://localhost:{}/", upstream.port());
    let routes = Router::new()
        .route("/quote", get(quote))
        .with_state(Rates { client, url });
    field::serve(&arguments, routes).await?;
    Ok(())
}
