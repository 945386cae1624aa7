//! Once a second a request replaces a large table, and the old one is dropped on its worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;

type Table = HashMap<u32, Vec<String>>;

#[derive(Clone)]
struct Prices {
    table: Arc<Mutex<Arc<Table>>>,
    is_fixed: bool,
}

fn table() -> Table {
    let row = |id: u32| {
        (
            id,
            vec![format!("{id} a"), format!("{id} b"), format!("{id} c")],
        )
    };
    (0..150_000).map(row).collect()
}

async fn reload(State(prices): State<Prices>) -> &'static str {
    let Ok(new) = tokio::task::spawn_blocking(table).await else {
        return "not reloaded";
    };
    let old = match prices.table.lock() {
        Ok(mut table) => std::mem::replace(&mut *table, Arc::new(new)),
        Err(_) => return "not reloaded",
    };
    if prices.is_fixed {
        // Nobody waits for that thread.
        tokio::task::spawn_blocking(move || drop(old));
    } else {
        // The fault: hundreds of thousands of strings are freed here.
        drop(old);
    }
    "reloaded"
}

async fn price() -> &'static str {
    tokio::time::sleep(Duration::from_millis(1)).await;
    "7"
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let prices = Prices {
        table: Arc::new(Mutex::new(Arc::new(table()))),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/price", get(price))
        .route("/reload", get(reload))
        .with_state(prices);
    field::serve(&arguments, routes).await
}
