//! Other ways to treat a queue, which the book compares.

use std::time::Duration;

/// Longest wait for a connection. The call takes 20 ms of the 250 for which a client waits, and the rest is to spare.
const MOST_WAIT: Duration = Duration::from_millis(170);

/// No task: a client that hangs up takes its request out of the queue.
pub(crate) mod cancelled {
    use axum::Router;
    use axum::extract::State;
    use axum::routing::get;

    use crate::quotes::{Quote, Quotes, Refusal};

    pub(crate) fn routes(quotes: Quotes) -> Router {
        Router::new().route("/quote", get(quote)).with_state(quotes)
    }

    async fn quote(State(quotes): State<Quotes>) -> Result<Quote, Refusal> {
        let connection = quotes.connection().await?;
        Ok(quotes.ask(connection).await)
    }
}

/// A bounded wait instead of a bounded number.
pub(crate) mod timeout {
    use axum::Router;
    use axum::extract::State;
    use axum::routing::get;

    use super::MOST_WAIT;
    use crate::quotes::{Quote, Quotes, Refusal};

    pub(crate) fn routes(quotes: Quotes) -> Router {
        Router::new().route("/quote", get(quote)).with_state(quotes)
    }

    async fn quote(State(quotes): State<Quotes>) -> Result<Quote, Refusal> {
        let connection = tokio::time::timeout(MOST_WAIT, quotes.connection()).await;
        let connection = connection.map_err(|_| Refusal::Busy)??;
        Ok(tokio::spawn(async move { quotes.ask(connection).await }).await?)
    }
}

/// The client says how long it waits, and nothing is begun that would end too late.
pub(crate) mod deadline {
    use std::time::{Duration, Instant};

    use axum::Router;
    use axum::extract::State;
    use axum::http::HeaderMap;
    use axum::routing::get;

    use crate::quotes::{CALL, CLIENTS_WAIT, Quote, Quotes, Refusal};

    pub(crate) fn routes(quotes: Quotes) -> Router {
        Router::new().route("/quote", get(quote)).with_state(quotes)
    }

    // ANCHOR: deadline
    async fn quote(State(quotes): State<Quotes>, headers: HeaderMap) -> Result<Quote, Refusal> {
        let deadline = Instant::now() + waits(&headers);
        let asked = tokio::spawn(async move {
            let connection = quotes.connection().await?;
            // One call, and two to spare: in a long queue everybody is served just before this limit.
            if Instant::now() + 3 * CALL > deadline {
                return Err(Refusal::Busy);
            }
            Ok(quotes.ask(connection).await)
        });
        asked.await?
    }

    /// Time for which the client waits, from its header.
    fn waits(headers: &HeaderMap) -> Duration {
        let header = headers.get("client-waits-ms");
        let written = header.and_then(|value| value.to_str().ok()?.parse().ok());
        written.map_or(CLIENTS_WAIT, Duration::from_millis)
    }
    // ANCHOR_END: deadline
}

/// A stack instead of a queue: the request that came last is served first.
pub(crate) mod last_first {
    use std::sync::{Arc, Mutex, PoisonError};

    use axum::Router;
    use axum::extract::State;
    use axum::routing::get;
    use tokio::sync::oneshot;

    use crate::quotes::{CONNECTIONS, Quote, Quotes, Refusal};

    pub(crate) fn routes(quotes: Quotes) -> Router {
        let stack = Stack(Arc::new(Mutex::new(Waiting {
            free: CONNECTIONS,
            requests: Vec::new(),
        })));
        Router::new()
            .route("/quote", get(quote))
            .with_state((quotes, stack))
    }

    async fn quote(State((quotes, stack)): State<(Quotes, Stack)>) -> Result<Quote, Refusal> {
        let grant = stack.grant().await?;
        let asked = tokio::spawn(async move {
            let connection = quotes.connection().await?;
            let quote = quotes.ask(connection).await;
            drop(grant);
            Ok(quote)
        });
        asked.await?
    }

    /// Requests that wait, the latest last.
    #[derive(Debug, Clone)]
    struct Stack(Arc<Mutex<Waiting>>);

    #[derive(Debug)]
    struct Waiting {
        free: usize,
        requests: Vec<oneshot::Sender<Grant>>,
    }

    /// The right to use a connection. Dropping it gives it to the request that came last and is still there.
    #[derive(Debug)]
    struct Grant(Option<Stack>);

    impl Stack {
        async fn grant(&self) -> Result<Grant, Refusal> {
            let later = {
                let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if waiting.free > 0 {
                    waiting.free -= 1;
                    return Ok(Grant(Some(self.clone())));
                }
                let (sender, receiver) = oneshot::channel();
                waiting.requests.push(sender);
                receiver
            };
            later.await.map_err(|_| Refusal::Broken)
        }
    }

    impl Drop for Grant {
        fn drop(&mut self) {
            let Some(stack) = self.0.take() else { return };
            let mut waiting = stack.0.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(latest) = waiting.requests.pop() {
                match latest.send(Grant(Some(stack.clone()))) {
                    Ok(()) => return,
                    // Its client has left. The grant that comes back must not be dropped under the lock.
                    Err(mut unused) => unused.0 = None,
                }
            }
            waiting.free += 1;
        }
    }
}

/// The problem behind tower's layers.
pub(crate) mod tower {
    use axum::Router;
    use axum::error_handling::HandleErrorLayer;
    use tower::limit::GlobalConcurrencyLimitLayer;
    use tower::{BoxError, ServiceBuilder};

    use crate::problem;
    use crate::quotes::{CLIENTS_WAIT, Quotes, Refusal};

    // ANCHOR: tower
    pub(crate) fn routes(quotes: Quotes) -> Router {
        let layers = ServiceBuilder::new()
            // Outermost: turns what the layers below return as an error into a 503.
            .layer(HandleErrorLayer::new(async |_: BoxError| Refusal::Busy))
            // Refuses at once where the next layer would let a request wait. Without it, that is a queue without an end.
            .load_shed()
            // Lets 48 in, of all routes together. A place is free again when the head of the answer is there, not its body.
            .layer(GlobalConcurrencyLimitLayer::new(48))
            // Counts from when a request is in, to the head of the answer.
            .timeout(CLIENTS_WAIT);
        problem::routes(quotes).layer(layers)
    }
    // ANCHOR_END: tower
}
