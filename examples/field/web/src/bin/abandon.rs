//! Each request spawns its work, which goes on when the client has left: the few permits are held for nobody.
//!
//! Clients wait for a quarter of a second.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;

#[derive(Clone)]
struct Printer {
    pages: Arc<Semaphore>,
    is_fixed: bool,
}

async fn print(pages: Arc<Semaphore>) -> Option<&'static str> {
    let _page = pages.acquire_owned().await.ok()?;
    tokio::time::sleep(Duration::from_millis(60)).await;
    Some("printed")
}

async fn order(State(printer): State<Printer>) -> Result<&'static str, StatusCode> {
    let job = print(printer.pages);
    let printed = if printer.is_fixed {
        // Ends with the request.
        job.await
    } else {
        // The fault: nobody stops it.
        tokio::spawn(job).await.ok().flatten()
    };
    printed.ok_or(StatusCode::SERVICE_UNAVAILABLE)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let printer = Printer {
        pages: Arc::new(Semaphore::new(4)),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new().route("/order", get(order)).with_state(printer);
    field::serve(&arguments, routes).await
}
