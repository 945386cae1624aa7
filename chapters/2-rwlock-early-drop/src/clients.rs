//! Clients that the service knows, and the subjects that they want to hear about.

use std::collections::{BTreeSet, HashMap};

/// All clients by their public key.
pub(crate) type Clients = HashMap<String, Client>;

/// A subscriber of the service.
#[derive(Clone)]
pub(crate) struct Client {
    /// Stable number of the client.
    pub(crate) id: u64,
    topics: BTreeSet<String>,
}

impl Client {
    /// Adds a topic, unless the client has it already.
    pub(crate) fn subscribe(&mut self, topic: String) {
        self.topics.insert(topic);
    }

    /// The topics in alphabetical order, with a comma between two.
    pub(crate) fn topics(&self) -> String {
        let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
        topics.join(",")
    }
}

/// The three clients that the service starts with; their ids count up from `first + 1`.
pub(crate) fn known(first: u64) -> Clients {
    let client = |key: &str, id, topics: &[&str]| {
        let topics = topics.iter().map(ToString::to_string).collect();
        (key.to_owned(), Client { id, topics })
    };
    HashMap::from([
        client("87-89-34", first + 1, &["cats", "dogs"]),
        client("22-38-21", first + 2, &["cats", "reptiles"]),
        client("12-67-22", first + 3, &["mice", "birds", "snakes"]),
    ])
}
