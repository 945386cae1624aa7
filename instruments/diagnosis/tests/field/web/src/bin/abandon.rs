//! Each request spawns its work, which goes on when the client has left: the few permits are held for nobody.
//!
//! Clients wait for a quarter of a second: two dozen of them ask for more than can be printed.

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

/// After this time in the queue the rest would take longer than clients wait.
const IN_TIME: Duration = Duration::from_millis(150);

async fn print(pages: Arc<Semaphore>) -> Option<&'static str> {
    let _page = pages.acquire_owned().await.ok()?;
    finish().await
}

async fn print_in_time(pages: Arc<Semaphore>) -> Option<&'static str> {
    let page = tokio::time::timeout(IN_TIME, pages.acquire_owned()).await;
    let _page = page.ok()?.ok()?;
    finish().await
}

async fn finish() -> Option<&'static str> {
    tokio::time::sleep(Duration::from_millis(60)).await;
    Some("printed")
}

async fn order(State(printer): State<Printer>) -> Result<&'static str, StatusCode> {
    let printed = if printer.is_fixed {
        // Ends with the request.
        print_in_time(printer.pages).await
    } else {
        // The fault: nobody stops it.
        tokio::spawn(print(printer.pages)).await.ok().flatten()
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
    let routes = Router::new()
        .route("/order", get(order))
        .with_state(printer);
    field::serve(&arguments, routes).await
}
