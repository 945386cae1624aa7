//! One step further: the clients are sorted when the service starts, and a request sorts nothing.

use std::sync::Arc;

use warp::{Filter, Rejection};

use crate::clients::{Client, Clients};

/// Number of clients on a page.
const PAGE: usize = 10;

/// `GET /clients/{number}` answers a page of the clients' names; the first one has the number 0.
pub fn routes(
    clients: Clients,
) -> impl Filter<Extract = (String,), Error = Rejection> + Clone + Send + Sync + 'static {
    let mut sorted = Arc::unwrap_or_clone(clients);
    sorted.sort_by(|one, other| {
        (&one.last_name, &one.first_name).cmp(&(&other.last_name, &other.first_name))
    });
    let sorted = Arc::new(sorted);

    warp::path!("clients" / usize)
        .and(warp::get())
        .map(move |number| page(&sorted, number))
}

/// The names on this page of clients who are in the order of their names.
pub fn page(sorted: &[Client], number: usize) -> String {
    let page = sorted.chunks(PAGE).nth(number).unwrap_or_default();
    let names: Vec<String> = page.iter().map(Client::name).collect();
    names.join(", ")
}
