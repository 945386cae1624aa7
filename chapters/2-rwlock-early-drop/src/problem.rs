//! The problem: a request keeps its read guard while it waits for the database.

use std::sync::Arc;

use lab::Database;
use tokio::sync::RwLock;
use warp::http::StatusCode;

use crate::clients::Clients;
use crate::service::Service;

/// The clients behind a lock that lets many read or one write, and the database.
#[derive(Clone)]
pub(crate) struct Directory {
    clients: Arc<RwLock<Clients>>,
    database: Database,
}

impl Directory {
    /// Starts with these clients.
    pub(crate) fn new(clients: Clients, database: Database) -> Self {
        let clients = Arc::new(RwLock::new(clients));
        Self { clients, database }
    }
}

impl Service for Directory {
    // ANCHOR: read
    async fn read(&self) -> String {
        let clients = self.clients.read().await;
        let ids: Vec<u64> = clients.values().map(|client| client.id).collect();

        self.database.call().await;

        let sum: u64 = ids.iter().sum();
        sum.to_string()
    }
    // ANCHOR_END: read

    // ANCHOR: subscribe
    async fn subscribe(&self, client: String, topic: String) -> Result<(), StatusCode> {
        let mut clients = self.clients.write().await;
        let client = clients.get_mut(&client).ok_or(StatusCode::NOT_FOUND)?;
        client.subscribe(topic);
        // While the guard lives, so that the log has the order of the writes.
        self.database.record(client.id, client.topics());
        Ok(())
    }
    // ANCHOR_END: subscribe

    async fn topics(&self, client: String) -> Result<String, StatusCode> {
        let clients = self.clients.read().await;
        let client = clients.get(&client).ok_or(StatusCode::NOT_FOUND)?;
        Ok(client.topics())
    }
}
