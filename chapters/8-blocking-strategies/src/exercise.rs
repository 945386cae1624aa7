//! Exercise: keep the reactor free while bodies are written and read.
//!
//! No line of `summarize` looks as if it blocked. But `push` writes to a file once
//! a body is large, and `summary` reads all of it back. Both return when they are
//! done, and until then the thread that accepts, reads and answers for everybody
//! does nothing else.
//!
//! Change the code below so that no request waits for another one's file on that
//! thread. Every body must still be fetched and read to its last byte. Keep three
//! limits: nearly as many bodies a second as before, far fewer threads than
//! requests, and no more memory than the files were meant to save.
//!
//!     cargo workshop check 8       is it fixed?
//!     cargo workshop hint 8        the next hint
//!     cargo workshop solution 8    one way to do it, as a diff
//!     cargo workshop reset 8       start over (your file is kept aside)

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{Asked, Error, Service};

// ANCHOR: routes
/// `GET /summarize` fetches a body and answers with its highest byte and its length; `GET /ping`
/// answers at once.
pub(crate) fn routes(service: Service) -> Router {
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(async || "pong"))
        .with_state(service)
}
// ANCHOR_END: routes

// ANCHOR: summarize
async fn summarize(
    State(service): State<Service>,
    Query(asked): Query<Asked>,
) -> Result<String, Error> {
    let mut body = service.bodies.fetch(asked.bytes).await?;
    // In memory while it is small, in a file once it is large.
    let mut kept = service.keep();
    while let Some(chunk) = body.chunk().await? {
        kept.push(chunk)?;
    }
    let summary = kept.summary()?;
    Ok(summary.to_string())
}
// ANCHOR_END: summarize
