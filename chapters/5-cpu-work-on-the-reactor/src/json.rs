//! The problem and the solution with real work: a document of about a megabyte, read and written by `serde_json`.

use std::sync::Arc;
use std::thread::available_parallelism;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use lab::Work;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Orders in the document, which make about a megabyte.
const ORDERS: u64 = 10_000;

/// `GET /data` reads and writes the document on the reactor's thread, `GET /ping` answers at once.
pub(crate) fn inline(work: Work) -> Router {
    Router::new()
        .route("/data", get(data_inline))
        .route("/ping", get(async || "pong"))
        .with_state(Service::new(work))
}

/// The same on threads of its own, a document for each CPU at a time.
pub(crate) fn pooled(work: Work) -> Router {
    Router::new()
        .route("/data", get(data_pooled))
        .route("/ping", get(async || "pong"))
        .with_state(Service::new(work))
}

#[derive(Clone)]
struct Service {
    work: Work,
    document: Arc<str>,
    permits: Arc<Semaphore>,
}

// ANCHOR: document
#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    customer: String,
    city: String,
    cents: u64,
    is_paid: bool,
}

/// Reads all orders, marks them as paid, and writes them again.
fn pay(document: &str) -> serde_json::Result<String> {
    let mut orders: Vec<Order> = serde_json::from_str(document)?;
    for order in &mut orders {
        order.is_paid = true;
    }
    serde_json::to_string(&orders)
}
// ANCHOR_END: document

impl Service {
    fn new(work: Work) -> Self {
        let order = |id| Order {
            id,
            customer: format!("customer number {id}"),
            city: "Llanfairpwllgwyngyll".to_owned(),
            cents: 100 * id,
            is_paid: false,
        };
        let orders: Vec<Order> = (0..ORDERS).map(order).collect();
        let document = serde_json::to_string(&orders).expect("orders can be written");
        let cpus = available_parallelism().map_or(1, usize::from);
        Self {
            work,
            document: document.into(),
            permits: Arc::new(Semaphore::new(cpus)),
        }
    }

    /// Pays the document's orders. The result is that of the chapter's other variants.
    fn run(&self) -> u64 {
        self.work
            .run_real(|| pay(&self.document).expect("this program has written it"))
    }
}

async fn data_inline(State(service): State<Service>) -> String {
    service.run().to_string()
}

async fn data_pooled(State(service): State<Service>) -> Result<String, StatusCode> {
    let permit = Arc::clone(&service.permits).acquire_owned().await;
    let permit = permit.expect("nobody closes the semaphore");
    let result = spawn_blocking(move || {
        let _permit = permit;
        service.run()
    })
    .await;
    let result = result.map_err(|_panicked| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(result.to_string())
}
