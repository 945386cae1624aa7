//! The probe: one request in fifty clones the names that it compares. The time that this saves tells
//! what no clones at all will save.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warp::{Filter, Rejection};

use crate::clients::Clients;
use crate::{problem, solution};

// ANCHOR: routes
/// `GET /clients/{number}` answers a page of the clients' names; the first one has the number 0.
pub fn routes(
    clients: Clients,
) -> impl Filter<Extract = (String,), Error = Rejection> + Clone + Send + Sync + 'static {
    let requests = Arc::new(AtomicU64::new(0));
    warp::path!("clients" / usize)
        .and(warp::get())
        .map(move |number| {
            if requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(50) {
                problem::page(&clients, number)
            } else {
                solution::page(&clients, number)
            }
        })
}
// ANCHOR_END: routes
