//! Exercise: answer nobody who has left.
//!
//! The database takes eight calls at once, and each takes 20 ms: 400 quotes per
//! second. When more are asked for, requests wait in a queue. Clients wait for
//! 250 ms; then they close the connection and are gone. Find out what the service
//! does for a request whose client has left.
//!
//! Change the code below so that the service keeps up its quotes under overload.
//! A client must get a quote while it is still there, or a 503. Thirty-two clients
//! who come together must all be served, and a call that has begun must run to its
//! end.
//!
//!     cargo workshop check 10       is it fixed?
//!     cargo workshop hint 10        the next hint
//!     cargo workshop solution 10    one way to do it, as a diff
//!     cargo workshop reset 10       start over (your file is kept aside)

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
