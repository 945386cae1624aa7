//! The solution: no more requests wait than can be answered in time; the next is refused at once.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use tokio::sync::Semaphore;

use crate::quotes::{Quote, Quotes, Refusal};

/// `GET /quote` answers with the price of the moment.
pub(crate) fn routes(quotes: Quotes) -> Router {
    Router::new().route("/quote", get(quote)).with_state(quotes)
}

// ANCHOR: quote
/// Requests inside the service: 8 that ask the database, and 40 that wait. The last one waits for 40 / 8 calls of 20 ms,
/// which leaves half of its client's 250 ms for a bad day.
static PLACES: Semaphore = Semaphore::const_new(48);

async fn quote(State(quotes): State<Quotes>) -> Result<Quote, Refusal> {
    let place = PLACES.try_acquire().map_err(|_| Refusal::Busy)?;
    // In a task of its own, so that a call runs to its end when a client hangs up.
    let asked = tokio::spawn(async move {
        let connection = quotes.connection().await?;
        let quote = quotes.ask(connection).await;
        drop(place);
        Ok(quote)
    });
    asked.await?
}
// ANCHOR_END: quote
