//! Clients that the service knows, shared by all requests.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

/// A subscriber of the service.
pub(crate) struct Client {
    /// Stable number of the client.
    pub(crate) id: u64,
    /// Subjects that the client wants to hear about; nothing reads them yet.
    #[allow(dead_code)]
    pub(crate) topics: Vec<String>,
}

/// All clients by their public key.
///
/// A `tokio::sync::Mutex`, because the problem holds its guard across an `.await`; whether it has
/// to be one is a question for the end of the chapter.
pub(crate) type Clients = Arc<Mutex<HashMap<String, Client>>>;

/// The three clients that the service starts with; their ids count up from `first + 1`.
pub(crate) fn known(first: u64) -> Clients {
    let client = |key: &str, id, topics: &[&str]| {
        let topics = topics.iter().map(ToString::to_string).collect();
        (key.to_owned(), Client { id, topics })
    };
    Arc::new(Mutex::new(HashMap::from([
        client("87-89-34", first + 1, &["cats", "dogs"]),
        client("22-38-21", first + 2, &["cats", "reptiles"]),
        client("12-67-22", first + 3, &["mice", "birds", "snakes"]),
    ])))
}
