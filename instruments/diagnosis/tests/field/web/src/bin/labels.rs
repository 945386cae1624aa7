//! Users' names are labels of a metric: the page of metrics grows, and takes a worker for long each time it is asked for.
//!
//! Reports: FuelLabs/data-systems#466, linera-io/linera-protocol#1262.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use prometheus::{Encoder, HistogramOpts, HistogramVec, Registry, TextEncoder};

/// Users who were there before.
const USERS: u32 = 20_000;

#[derive(Clone)]
struct Shop {
    registry: Registry,
    took: HistogramVec,
    is_fixed: bool,
}

impl Shop {
    fn order(&self, user: &str) -> prometheus::HistogramTimer {
        // The fault: each user is a series of its own.
        let user = if self.is_fixed { "any" } else { user };
        self.took.with_label_values(&["order", user]).start_timer()
    }
}

async fn order(State(shop): State<Shop>, Path(user): Path<String>) -> &'static str {
    let timer = shop.order(&user);
    tokio::time::sleep(Duration::from_millis(1)).await;
    timer.observe_duration();
    "ordered"
}

async fn metrics(State(shop): State<Shop>) -> Result<Vec<u8>, StatusCode> {
    let mut text = Vec::new();
    let encoded = TextEncoder::new().encode(&shop.registry.gather(), &mut text);
    encoded.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(text)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let options = HistogramOpts::new("took_seconds", "time of orders");
    let took = HistogramVec::new(options, &["what", "user"])?;
    let registry = Registry::new();
    registry.register(Box::new(took.clone()))?;
    let shop = Shop {
        registry,
        took,
        is_fixed: arguments.fixed,
    };
    for user in 0..USERS {
        shop.order(&format!("earlier-{user}")).observe_duration();
    }
    let routes = Router::new()
        .route("/order/{user}", get(order))
        .route("/metrics", get(metrics))
        .with_state(shop);
    field::serve(&arguments, routes).await?;
    Ok(())
}
