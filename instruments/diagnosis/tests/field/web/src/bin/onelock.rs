//! One connection behind a `std::sync::Mutex`, asked on blocking threads: one works, and the others wait for it.
//!
//! Reports: rubys/roundhouse#10, librefang/librefang#3567.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;

#[derive(Default)]
struct Connection {
    queries: u64,
}

impl Connection {
    fn query(&mut self) -> u64 {
        std::thread::sleep(Duration::from_millis(5));
        self.queries += 1;
        self.queries
    }
}

type Connections = Arc<Vec<Mutex<Connection>>>;

fn read(connections: &Connections, id: usize) -> u64 {
    let connection = connections[id % connections.len()].lock();
    connection.unwrap_or_else(PoisonError::into_inner).query()
}

async fn row(
    State(connections): State<Connections>,
    Path(id): Path<usize>,
) -> Result<String, StatusCode> {
    let row = tokio::task::spawn_blocking(move || read(&connections, id)).await;
    let row = row.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(row.to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    // The fault: one for all.
    let count = if arguments.fixed { 64 } else { 1 };
    let connections: Vec<_> = (0..count).map(|_| Mutex::default()).collect();
    let routes = Router::new()
        .route("/row/{id}", get(row))
        .with_state(Arc::new(connections));
    field::serve(&arguments, routes).await
}
