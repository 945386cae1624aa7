//! The problem: every request gets a task, and every task waits for a connection.

use axum::Router;
use axum::extract::State;
use axum::routing::get;

use crate::quotes::{Quote, Quotes, Refusal};

/// `GET /quote` answers with the price of the moment.
pub(crate) fn routes(quotes: Quotes) -> Router {
    Router::new().route("/quote", get(quote)).with_state(quotes)
}

// ANCHOR: quote
async fn quote(State(quotes): State<Quotes>) -> Result<Quote, Refusal> {
    // In a task of its own, so that a call runs to its end when a client hangs up.
    let asked = tokio::spawn(async move {
        let connection = quotes.connection().await?;
        Ok(quotes.ask(connection).await)
    });
    asked.await?
}
// ANCHOR_END: quote
