//! Exercise: let the sort compare names without a copy of them.
//!
//! To clone a `String` is to ask the allocator for memory, to copy the bytes, and
//! to give the memory back when the copy goes out of scope. Ask of each value in a
//! hot loop, and a sort is one: does this code need to own it, or only to read it?
//!
//! Change `page` below so that no name is cloned to be compared. It must answer as
//! before: every page, of all clients, in the order of their names.
//!
//!     cargo workshop check 3       is it fixed?
//!     cargo workshop hint 3        the next hint
//!     cargo workshop solution 3    one way to do it, as a diff
//!     cargo workshop reset 3       start over (your file is kept aside)

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
    sorted.sort_by_key(|client| (client.last_name.clone(), client.first_name.clone()));

    let page = sorted.chunks(PAGE).nth(number).unwrap_or_default();
    let names: Vec<String> = page.iter().map(|client| client.name()).collect();
    names.join(", ")
}
// ANCHOR_END: page
