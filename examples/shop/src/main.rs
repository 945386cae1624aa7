//! A shop: orders in a database with five connections, a payment service to call, a search.
//!
//! It has two faults that are common and hard to see. With `--fixed` it runs without them, so that
//! both builds can be compared; in your own service the two would be commits.
//!
//!     cargo run --release -- --port 8080
//!     cargo run --release -- --port 8080 --fixed

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;

use crate::catalogue::Catalogue;
use crate::database::Database;

mod catalogue;
mod database;

struct Shop {
    database: Database,
    catalogue: Arc<Catalogue>,
    is_fixed: bool,
}

#[derive(Deserialize)]
struct Search {
    q: String,
}

async fn health() -> &'static str {
    "ok"
}

/// Reads the order, then asks the payment service.
async fn checkout(
    State(shop): State<Arc<Shop>>,
    Path(order): Path<u32>,
) -> Result<String, StatusCode> {
    let mut connection = shop.database.connection().await;
    let price = connection.price_of(order).await;
    if shop.is_fixed {
        drop(connection);
        pay(price).await;
    } else {
        // The first fault: nothing is read any more, and the connection is still held. Five
        // checkouts at a time is all that the shop can do.
        pay(price).await;
        drop(connection);
    }
    Ok(format!("order {order}: paid {price} cents"))
}

/// Stands in for a call over the network.
async fn pay(_cents: u32) {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn search(
    State(shop): State<Arc<Shop>>,
    Query(search): Query<Search>,
) -> Result<String, StatusCode> {
    let found = if shop.is_fixed {
        let catalogue = Arc::clone(&shop.catalogue);
        tokio::task::spawn_blocking(move || catalogue.nearest(&search.q))
            .await
            .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
    } else {
        // The second fault: some milliseconds of work in which this thread answers nobody else.
        shop.catalogue.nearest(&search.q)
    };
    Ok(found)
}

async fn metrics(State(shop): State<Arc<Shop>>) -> String {
    format!(
        "# TYPE db_connections_idle_in_use gauge\n\
         db_connections_idle_in_use {}\n\
         # TYPE db_queries_total counter\n\
         db_queries_total {}\n",
        shop.database.most_idle(),
        shop.database.queries()
    )
}

/// The port to listen on, and whether the faults are fixed.
fn arguments() -> Result<(u16, bool), String> {
    let mut port = std::env::var("PORT").ok();
    let mut is_fixed = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--port" => port = arguments.next(),
            "--fixed" => is_fixed = true,
            other => return Err(format!("there is no {other}; take --port 8080 and --fixed")),
        }
    }
    let port = port.as_deref().unwrap_or("8080");
    let port = port.parse().map_err(|_| format!("{port} is no port"))?;
    Ok((port, is_fixed))
}

#[tokio::main]
async fn main() -> ExitCode {
    let (port, is_fixed) = match arguments() {
        Ok(arguments) => arguments,
        Err(sentence) => {
            eprintln!("error: {sentence}");
            return ExitCode::from(2);
        }
    };
    let shop = Arc::new(Shop {
        database: Database::new(5),
        catalogue: Arc::new(Catalogue::new(300_000)),
        is_fixed,
    });
    // ANCHOR: endpoints
    let debug = debug_endpoints::DebugEndpoints::new();
    let router = Router::new()
        .route("/health", get(health))
        .route("/checkout/{order}", get(checkout))
        .route("/search", get(search))
        .route("/metrics", get(metrics))
        .layer(debug.layer())
        .with_state(shop)
        .merge(debug.router())
        .into_make_service_with_connect_info::<SocketAddr>();
    // ANCHOR_END: endpoints
    let listener = match tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("error: port {port}: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("the shop is open on http://127.0.0.1:{port}");
    match axum::serve(listener, router).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
