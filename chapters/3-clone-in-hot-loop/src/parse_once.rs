//! One step further: the ids are parsed before the rounds, which then only add.

use warp::{Filter, Rejection};

use crate::clients::Clients;

/// How often a request goes through the ids.
const ROUNDS: u64 = 1_000_000;

// ANCHOR: routes
/// `GET /cpu` answers the checksum of all clients' ids.
pub fn routes(
    clients: Clients,
) -> impl Filter<Extract = (String,), Error = Rejection> + Clone + Send + Sync + 'static {
    warp::path!("cpu")
        .and(warp::get())
        .map(move || cpu(&clients))
}

fn cpu(clients: &Clients) -> String {
    let ids: Vec<String> = clients
        .values()
        .map(|client| client.id.to_string())
        .collect();
    checksum(&ids, ROUNDS).to_string()
}
// ANCHOR_END: routes

// ANCHOR: checksum
/// Hashes the ids, from the last to the first, once a round: FNV-1a, of numbers instead of bytes.
pub fn checksum(ids: &[String], rounds: u64) -> u64 {
    let ids: Vec<u64> = ids
        .iter()
        .map(|id| id.parse().unwrap_or_default())
        .collect();

    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for _ in 0..rounds {
        for id in ids.iter().rev() {
            hash = (hash ^ id).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
// ANCHOR_END: checksum
