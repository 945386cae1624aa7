//! What the service knows: its clients, who do not change while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A subscriber of the service.
#[derive(Debug)]
pub struct Client {
    /// Stable number of the client.
    pub id: u64,
    /// What the client wants to hear about; nothing reads it yet.
    pub topics: Vec<String>,
}

/// All clients by their public key, and in its order, on which the checksum depends.
///
/// Nobody writes, so there is no lock: locks are the subject of other chapters.
pub type Clients = Arc<BTreeMap<String, Client>>;

/// The three clients that the service starts with; their ids count up from 1, or from elsewhere if
/// there is a `seed`. No id has more than two digits, so that to parse one costs always the same.
pub fn known(seed: u64) -> Clients {
    let first = seed % 97;
    let client = |key: &str, id, topics: &[&str]| {
        let topics = topics.iter().map(ToString::to_string).collect();
        (key.to_owned(), Client { id, topics })
    };
    Arc::new(BTreeMap::from([
        client("87-89-34", first + 1, &["cats", "dogs"]),
        client("22-38-21", first + 2, &["cats", "reptiles"]),
        client("12-67-22", first + 3, &["mice", "birds", "snakes"]),
    ]))
}
