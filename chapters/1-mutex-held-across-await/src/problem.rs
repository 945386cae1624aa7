//! The problem: every request holds the lock while it waits for the database.

use std::convert::Infallible;

use lab::Database;
use warp::{Filter, Rejection, Reply};

use crate::clients::Clients;

// ANCHOR: routes
/// `GET /read` answers the sum of all clients' ids.
pub(crate) fn routes(
    clients: Clients,
    database: Database,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection> + Clone {
    warp::path!("read")
        .and(warp::get())
        .and(warp::any().map(move || clients.clone()))
        .and(warp::any().map(move || database.clone()))
        .and_then(read)
}
// ANCHOR_END: routes

// ANCHOR: read
async fn read(clients: Clients, database: Database) -> Result<impl Reply, Infallible> {
    let clients = clients.lock().await;
    let ids: Vec<u64> = clients.values().map(|client| client.id).collect();

    database.call().await;

    let sum: u64 = ids.iter().sum();
    Ok(sum.to_string())
}
// ANCHOR_END: read
