//! Any way to store a body with any strategy, as the URL says: `/summarize?keep=fs&strategy=permit`.

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use crate::{Asked, Error, Service, Strategy};

/// Bytes that are off-loaded at once. To off-load costs some microseconds, however many bytes it is.
const BATCH: usize = 256 * 1024;

/// Answers requests that name a strategy; all others go to `routes`.
pub fn or_else(service: Service, routes: Router) -> Router {
    routes.layer(from_fn_with_state(service, answer))
}

async fn answer(
    State(service): State<Service>,
    Query(asked): Query<Asked>,
    request: Request,
    next: Next,
) -> Response {
    match asked.strategy {
        Some(strategy) => summarize(service, asked, strategy).await.into_response(),
        None => next.run(request).await,
    }
}

// ANCHOR: summarize
/// Fetches, keeps and summarises a body; whatever blocks is done by `strategy`.
///
/// # Errors
///
/// When there is no body, or no room for it.
pub async fn summarize(
    service: Service,
    asked: Asked,
    strategy: Strategy,
) -> Result<String, Error> {
    let blocking = &service.blocking;
    let mut body = service.bodies.fetch(asked.bytes).await?;
    let mut kept = match asked.keep {
        Some(keep) => service.keep_as(keep)?,
        None => service.keep(),
    };
    loop {
        let batch = body.batch(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        // Keeping chunks in memory does not block.
        kept = if asked.keep.is_none() || kept.is_in_file() {
            blocking.run(strategy, move || kept.with(batch)).await??
        } else {
            kept.with(batch)?
        };
    }
    let summary = blocking.run(strategy, move || kept.summary()).await??;
    Ok(summary.to_string())
}
// ANCHOR_END: summarize
