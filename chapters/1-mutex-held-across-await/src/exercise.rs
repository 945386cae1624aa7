//! Exercise: let requests wait for the database side by side.
//!
//! A guard is a value: it unlocks when it is dropped, and it is dropped at the
//! end of the scope that owns it. Find the scope that owns this one, and ask
//! what it spans.
//!
//! Change `read` below so that no request waits for another one's database call.
//! It must answer as before, and must still call the database for every request.
//!
//!     cargo workshop check 1       is it fixed?
//!     cargo workshop hint 1        the next hint
//!     cargo workshop solution 1    one way to do it, as a diff
//!     cargo workshop reset 1       start over (your file is kept aside)

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
