//! The solution: the sort borrows the names that it compares.

use warp::{Filter, Rejection};

use crate::clients::{Client, Clients};

/// Number of clients on a page.
const PAGE: usize = 10;

// ANCHOR: routes
/// `GET /clients/{number}` answers a page of the clients' names; the first one has the number 0.
pub fn routes(
    clients: Clients,
) -> impl Filter<Extract = (String,), Error = Rejection> + Clone + Send + Sync + 'static {
    warp::path!("clients" / usize)
        .and(warp::get())
        .map(move |number| page(&clients, number))
}
// ANCHOR_END: routes

// ANCHOR: page
/// The names on this page of a list of all clients, in the order of their names.
pub fn page(clients: &[Client], number: usize) -> String {
    let mut sorted: Vec<&Client> = clients.iter().collect();
    sorted.sort_by_key(|client| (&client.last_name, &client.first_name));

    let page = sorted.chunks(PAGE).nth(number).unwrap_or_default();
    let names: Vec<String> = page.iter().map(|client| client.name()).collect();
    names.join(", ")
}
// ANCHOR_END: page
