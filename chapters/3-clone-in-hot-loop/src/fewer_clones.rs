//! The probe: only the first quarter of the rounds clones the ids, as the problem does. The time
//! that this saves tells what no clones at all will save.

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
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for _ in 0..rounds / 4 {
        for id in ids.iter().cloned().rev() {
            let id: u64 = id.parse().unwrap_or_default();
            hash = (hash ^ id).wrapping_mul(0x0100_0000_01b3);
        }
    }
    for _ in rounds / 4..rounds {
        for id in ids.iter().rev() {
            let id: u64 = id.parse().unwrap_or_default();
            hash = (hash ^ id).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
// ANCHOR_END: checksum
