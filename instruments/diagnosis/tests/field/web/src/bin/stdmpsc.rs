//! `recv` of `std::sync::mpsc` in an async function blocks its worker.
//!
//! Reports: massalabs/massa#2955, seanmonstar/reqwest#1697.

use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use field::Arguments;

const WORK: Duration = Duration::from_millis(15);

async fn wait(State(is_fixed): State<bool>, Path(id): Path<u32>) -> String {
    if is_fixed {
        let (answer, answered) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            thread::sleep(WORK);
            let _ = answer.send(id);
        });
        return format!("{:?}", answered.await);
    }
    let (answer, answered) = std::sync::mpsc::channel();
    thread::spawn(move || {
        thread::sleep(WORK);
        let _ = answer.send(id);
    });
    // The fault: it waits on the worker.
    format!("{:?}", answered.recv())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new()
        .route("/wait/{id}", get(wait))
        .with_state(arguments.fixed);
    field::serve(&arguments, routes).await
}
