//! A shop: orders in a database with five connections, a payment service to call, a search.
//!
//! It has two faults that are common and hard to see. With `--fixed` it runs without them, so that
//! both builds can be compared; in your own service the two would be commits. Its debug endpoints are on port 6060,
//! or on the one that `--admin-port` names.
//!
//!     cargo run --release -- --port 8080
//!     cargo run --release -- --port 8080 --fixed

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

/// The command line.
struct Arguments {
    port: u16,
    /// Port of the debug endpoints.
    admin_port: u16,
    is_fixed: bool,
}

impl Arguments {
    fn of_process() -> Result<Self, String> {
        let mut read = Self {
            port: 8080,
            admin_port: 6060,
            is_fixed: false,
        };
        if let Ok(port) = std::env::var("PORT") {
            read.port = parsed(&port)?;
        }
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--port" => read.port = parsed(&arguments.next().unwrap_or_default())?,
                "--admin-port" => read.admin_port = parsed(&arguments.next().unwrap_or_default())?,
                "--fixed" => read.is_fixed = true,
                other => {
                    return Err(format!(
                        "there is no {other}; take --port 8080, --admin-port 6060 and --fixed"
                    ));
                }
            }
        }
        Ok(read)
    }
}

fn parsed(port: &str) -> Result<u16, String> {
    port.parse().map_err(|_| format!("`{port}` is no port"))
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments {
        port,
        admin_port,
        is_fixed,
    } = match Arguments::of_process() {
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
    match debug.listen(("127.0.0.1", admin_port)) {
        Ok(address) => println!("profiles are at http://{address}/debug"),
        // Another shop has the port, perhaps. Orders go on without profiles.
        Err(error) => eprintln!("warning: {error}"),
    }
    let router = Router::new()
        .route("/health", get(health))
        .route("/checkout/{order}", get(checkout))
        .route("/search", get(search))
        .route("/metrics", get(metrics))
        .layer(debug.layer())
        .with_state(shop);
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
