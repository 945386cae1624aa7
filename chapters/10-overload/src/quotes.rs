//! Common parts of all variants: the database that knows the quotes, its connections, and the answers.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use lab::Database;
use serde::Serialize;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

// ANCHOR: capacity
/// Calls that the database takes at once.
pub(crate) const CONNECTIONS: usize = 8;
/// Length of a call. So the capacity is 8 / 0.020 s = 400 quotes per second.
pub(crate) const CALL: Duration = Duration::from_millis(20);
/// Time after which a client closes its connection and is gone.
pub(crate) const CLIENTS_WAIT: Duration = Duration::from_millis(250);
// ANCHOR_END: capacity

/// State for every request. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) struct Quotes {
    database: Database,
    connections: Arc<Semaphore>,
    cents: u64,
}

/// The answer to a client.
#[derive(Debug, Serialize)]
pub(crate) struct Quote {
    cents: u64,
}

impl Quotes {
    pub(crate) fn new(database: Database, data_seed: u64) -> Self {
        Self {
            database,
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            cents: 4200 + data_seed,
        }
    }

    /// Waits until a connection to the database is free. Requests wait in the order in which they came.
    pub(crate) async fn connection(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let _counted = self.database.waiting();
        Arc::clone(&self.connections).acquire_owned().await
    }

    /// Asks the database, and gives the connection back.
    pub(crate) async fn ask(&self, connection: OwnedSemaphorePermit) -> Quote {
        self.database.call().await;
        drop(connection);
        Quote { cents: self.cents }
    }
}

impl IntoResponse for Quote {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

// ANCHOR: refusal
/// Why a client gets no quote.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// More ask than can be served in time.
    Busy,
    /// The task that asked the database panicked, or the service stops.
    Broken,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Busy => {
                let later = [(header::RETRY_AFTER, "1")];
                (StatusCode::SERVICE_UNAVAILABLE, later, "busy").into_response()
            }
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
// ANCHOR_END: refusal

impl From<JoinError> for Refusal {
    fn from(_: JoinError) -> Self {
        Self::Broken
    }
}

impl From<AcquireError> for Refusal {
    fn from(_: AcquireError) -> Self {
        Self::Broken
    }
}
