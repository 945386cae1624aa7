//! Another fix: readers keep a snapshot, which is no guard and delays no writer.

use std::sync::{Arc, PoisonError, RwLock};

use lab::Database;
use warp::http::StatusCode;

use crate::clients::Clients;
use crate::service::Service;

/// The newest clients, and the database.
///
/// The lock protects which `Arc` is the newest, and is held for as long as it takes to clone one.
/// It is the standard library's: its guard cannot be kept across an `.await`, because it is not
/// `Send`.
#[derive(Clone)]
pub(crate) struct Directory {
    clients: Arc<RwLock<Arc<Clients>>>,
    database: Database,
}

impl Directory {
    /// Starts with these clients.
    pub(crate) fn new(clients: Clients, database: Database) -> Self {
        let clients = Arc::new(RwLock::new(Arc::new(clients)));
        Self { clients, database }
    }

    // ANCHOR: snapshot
    /// The clients as they are now; later writes go into a new map.
    fn snapshot(&self) -> Arc<Clients> {
        let newest = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&newest)
    }
    // ANCHOR_END: snapshot
}

impl Service for Directory {
    async fn read(&self) -> String {
        let clients = self.snapshot();
        let ids: Vec<u64> = clients.values().map(|client| client.id).collect();

        self.database.call().await;

        let sum: u64 = ids.iter().sum();
        sum.to_string()
    }

    // ANCHOR: subscribe
    async fn subscribe(&self, client: String, topic: String) -> Result<(), StatusCode> {
        let mut newest = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        // Copies the map if a reader still has it, and writes into it otherwise.
        let clients = Arc::make_mut(&mut newest);
        let client = clients.get_mut(&client).ok_or(StatusCode::NOT_FOUND)?;
        client.subscribe(topic);
        // While the guard lives, so that the log has the order of the writes.
        self.database.record(client.id, client.topics());
        Ok(())
    }
    // ANCHOR_END: subscribe

    async fn topics(&self, client: String) -> Result<String, StatusCode> {
        let clients = self.snapshot();
        let client = clients.get(&client).ok_or(StatusCode::NOT_FOUND)?;
        Ok(client.topics())
    }
}
