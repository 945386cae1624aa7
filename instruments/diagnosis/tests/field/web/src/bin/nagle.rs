//! Answers that take 40 ms on an idle machine: written in two pieces, on connections without `TCP_NODELAY`.
//!
//! The second piece waits in the kernel until the other end acknowledges the first, and that end delays it, because it
//! hopes to send an answer with it: Nagle's algorithm and delayed acknowledgements.
//!
//! Reports: tokio-rs/axum#2521, hyperium/hyper#3269, rwf2/Rocket#2062, scylladb/vector-store#214.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use field::Arguments;
use futures::stream;

/// Two pieces, the second a moment after the first.
async fn report() -> Body {
    let pieces = stream::unfold(0, async |number| {
        tokio::task::yield_now().await;
        if number == 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let piece = Bytes::from(vec![b'a' + number; 300]);
        (number < 2).then_some((Ok::<_, Infallible>(piece), number + 1))
    });
    Body::from_stream(pieces)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new().route("/report", get(report));
    // The fault: the system's default.
    let is_nodelay = arguments.fixed;
    field::serve_with(&arguments, routes, is_nodelay).await
}
