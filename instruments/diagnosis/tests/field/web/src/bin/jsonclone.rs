//! A whole document is copied for each answer, of which a few bytes are used.
//!
//! Reports: cube-js/cube#8638, vm0-ai/vm0#21148.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use field::Arguments;
use serde_json::{Value, json};

#[derive(Clone)]
struct Shop {
    catalogue: Arc<Value>,
    is_fixed: bool,
}

async fn item(State(shop): State<Shop>, Path(id): Path<usize>) -> String {
    if shop.is_fixed {
        return shop.catalogue["items"][id]["name"].to_string();
    }
    // The fault: a copy of all items.
    let catalogue = Value::clone(&shop.catalogue);
    catalogue["items"][id]["name"].to_string()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let mut items = Vec::new();
    for id in 0..6_000 {
        let stock = json!({ "here": id, "there": 2 });
        let tags = ["a", "b", "c"];
        items.push(json!({ "id": id, "name": format!("item {id}"), "tags": tags, "stock": stock }));
    }
    let shop = Shop {
        catalogue: Arc::new(json!({ "items": items })),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/item/{id}", get(item))
        .with_state(shop);
    field::serve(&arguments, routes).await
}
