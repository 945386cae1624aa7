//! Stalls at random places: log lines are written to a pipe by the handlers, and its reader is slow.
//!
//! Start it with a pipe at its standard output: `logging | (sleep 60; cat) > /dev/null`.
//!
//! Reports: tokio-rs/tracing#2653, tokio-rs/tracing#668, elefant-dev/fregate-rs#152.

use axum::Router;
use axum::routing::get;
use field::Arguments;

async fn order() -> &'static str {
    for step in 0..40 {
        tracing::info!(
            step,
            "what the handler does at this moment, in a line that is as long as most are"
        );
    }
    "done"
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    // A thread writes what fits into its queue, and drops the rest.
    let (queue, _writes_what_is_left) = tracing_appender::non_blocking(std::io::stdout());
    if arguments.fixed {
        tracing_subscriber::fmt().with_writer(queue).init();
    } else {
        // The fault: each line is a blocking write.
        tracing_subscriber::fmt()
            .with_writer(std::io::stdout)
            .init();
    }
    let routes = Router::new().route("/order", get(order));
    field::serve(&arguments, routes).await
}
