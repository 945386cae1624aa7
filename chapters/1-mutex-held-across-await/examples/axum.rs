//! The problem's handler in axum. `cargo run -p chapter1 --example axum` serves it as the chapter's own service.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use lab::{Database, Lab, Uses};

#[path = "../src/clients.rs"]
mod clients;

use clients::Clients;

#[tokio::main]
async fn main() -> Result<(), lab::Error> {
    #[derive(Clone, Copy, clap::ValueEnum)]
    enum Variant {
        Exercise,
    }
    let (Variant::Exercise, lab) = Lab::start("axum", &[Uses::Database])?;
    let clients = clients::known(lab.data_seed());
    let database = lab.database(Duration::from_millis(50));
    let routes = Router::new()
        .route("/read", get(read))
        .with_state((clients, database));
    lab.serve(routes).await
}

// ANCHOR: read
async fn read(State((clients, database)): State<(Clients, Database)>) -> String {
    let clients = clients.lock().await;
    let ids: Vec<u64> = clients.values().map(|client| client.id).collect();

    database.call().await;

    let sum: u64 = ids.iter().sum();
    sum.to_string()
}
// ANCHOR_END: read
