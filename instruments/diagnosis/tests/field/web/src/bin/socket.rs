//! Streams over WebSockets: each client's messages are computed on the workers.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use field::Arguments;

async fn stream(mut socket: WebSocket, is_fixed: bool) {
    loop {
        if is_fixed {
            tokio::time::sleep(Duration::from_millis(20)).await;
        } else {
            // The fault: a picture is drawn on the worker.
            field::compute(Duration::from_millis(20));
        }
        if socket
            .send(Message::Text("x".repeat(1000).into()))
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn pictures(State(is_fixed): State<bool>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| stream(socket, is_fixed))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let routes = Router::new()
        .route("/pictures", get(pictures))
        .with_state(arguments.fixed);
    field::serve(&arguments, routes).await
}
