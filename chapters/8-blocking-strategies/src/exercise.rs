//! Exercise: keep the reactor free while bodies are sent to the archive and read back.
//!
//! No line of `summarize` looks as if it blocked. But the archive's client is a
//! blocking one: `push` and `summary` return when the archive has answered, and until
//! then the thread that accepts, reads and answers for everybody does nothing else.
//!
//! Change the code below so that no request waits on that thread for another one's
//! call. Every body must still be sent to the archive, and be read back from there to
//! its last byte. Keep two limits: nearly as many bodies a second as before, and far
//! fewer threads than requests.
//!
//! What you may need:
//!
//!     tokio::task::spawn_blocking(closure).await?   runs it on another thread
//!     kept.append(&part)?                           is `push`, and gives `kept` back
//!
//! A closure for another thread cannot borrow `kept`: it takes it, and returns it.
//!
//!     cargo workshop check 8       is it fixed?
//!     cargo workshop hint 8        the next hint
//!     cargo workshop solution 8    one way to do it, as a diff
//!     cargo workshop reset 8       start over (your file is kept aside)

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{BodyQuery, Error, Service, Summary, ping};

// ANCHOR: routes
/// `GET /summarize` fetches a body and answers with its highest byte and its length; `GET /ping`
/// asks the database whether it is there.
pub(crate) fn routes(service: Service) -> Router {
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(ping))
        .with_state(service)
}
// ANCHOR_END: routes

// ANCHOR: summarize
async fn summarize(
    State(service): State<Service>,
    Query(query): Query<BodyQuery>,
) -> Result<Summary, Error> {
    let mut body = service.bodies.fetch(query.bytes).await?;
    let mut kept = service.archive.create();
    while let Some(part) = body.part().await? {
        kept.push(&part)?;
    }
    let summary = kept.summary()?;
    Ok(summary)
}
// ANCHOR_END: summarize
