//! Problem and solution with a `Mutex` in place of the `RwLock`, for the comparison: held during the
//! call it is chapter 1's fault.

use std::sync::Arc;

use lab::Database;
use tokio::sync::Mutex;
use warp::http::StatusCode;

use crate::clients::Clients;
use crate::service::Service;

/// The clients behind a lock that lets one in at a time, and the database.
#[derive(Clone)]
pub(crate) struct Directory {
    clients: Arc<Mutex<Clients>>,
    database: Database,
    hold: bool,
}

impl Directory {
    /// Starts with these clients. With `hold`, a read keeps its guard while it calls the database.
    pub(crate) fn new(clients: Clients, database: Database, hold: bool) -> Self {
        let clients = Arc::new(Mutex::new(clients));
        Self {
            clients,
            database,
            hold,
        }
    }
}

impl Service for Directory {
    async fn read(&self) -> String {
        let clients = self.clients.lock().await;
        let ids: Vec<u64> = clients.values().map(|client| client.id).collect();
        // Dropped here, unless it is to be held until the end.
        let _held = self.hold.then_some(clients);

        self.database.call().await;

        let sum: u64 = ids.iter().sum();
        sum.to_string()
    }

    async fn subscribe(&self, client: String, topic: String) -> Result<(), StatusCode> {
        let mut clients = self.clients.lock().await;
        let client = clients.get_mut(&client).ok_or(StatusCode::NOT_FOUND)?;
        client.subscribe(topic);
        // While the guard lives, so that the log has the order of the writes.
        self.database.record(client.id, client.topics());
        Ok(())
    }

    async fn topics(&self, client: String) -> Result<String, StatusCode> {
        let clients = self.clients.lock().await;
        let client = clients.get(&client).ok_or(StatusCode::NOT_FOUND)?;
        Ok(client.topics())
    }
}
