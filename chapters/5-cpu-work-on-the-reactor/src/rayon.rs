//! The other form of the solution: rayon's threads do the work, a channel brings the result back.

use std::sync::Arc;

use ::rayon::{ThreadPool, ThreadPoolBuilder};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use lab::Work;
use tokio::sync::oneshot::{self, error::RecvError};

pub(crate) use crate::solution::runtime;

/// `GET /data` answers with the result of the work, `GET /ping` at once.
pub(crate) fn routes(work: Work) -> Router {
    Router::new()
        .route("/data", get(data))
        .route("/ping", get(async || "pong"))
        .with_state(Pool::new(work))
}

async fn data(State(pool): State<Pool>) -> Result<String, StatusCode> {
    let result = pool.run().await;
    let result = result.map_err(|_panicked| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(result.to_string())
}

// ANCHOR: pool
/// Work on rayon's threads, of which there is one for each CPU.
#[derive(Clone)]
struct Pool {
    work: Work,
    threads: Arc<ThreadPool>,
}

impl Pool {
    fn new(work: Work) -> Self {
        let threads = ThreadPoolBuilder::new()
            // Without a handler a panic would end the whole service.
            .panic_handler(|_| ())
            .build()
            .expect("a thread for each CPU");
        let threads = Arc::new(threads);
        Self { work, threads }
    }

    /// Queues the work and waits for it; an error if it panicked, which drops the sender.
    async fn run(self) -> Result<u64, RecvError> {
        let (sender, receiver) = oneshot::channel();
        self.threads.spawn(move || {
            // Skips the work of a request that was given up.
            if !sender.is_closed() {
                let _ = sender.send(self.work.run());
            }
        });
        receiver.await
    }
}
// ANCHOR_END: pool
