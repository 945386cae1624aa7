//! Memory that grows: an unbounded channel to one consumer that is slower than the clients.
//!
//! Reports: librefang/librefang#3580, sevenlabs-hq/carbon#218.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver, UnboundedSender};

type Event = Vec<u8>;

#[derive(Clone)]
enum Queue {
    Unbounded(UnboundedSender<Event>),
    Bounded(Sender<Event>),
}

async fn event(State(queue): State<Queue>) -> Result<&'static str, StatusCode> {
    let event = vec![7; 4096];
    let is_queued = match queue {
        // The fault: it takes whatever comes, and "queued" is answered at once.
        Queue::Unbounded(queue) => queue.send(event).is_ok(),
        Queue::Bounded(queue) => queue.send(event).await.is_ok(),
    };
    is_queued
        .then_some("queued")
        .ok_or(StatusCode::SERVICE_UNAVAILABLE)
}

async fn store(event: Event) {
    std::hint::black_box(event);
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn store_all_unbounded(mut events: UnboundedReceiver<Event>) {
    while let Some(event) = events.recv().await {
        store(event).await;
    }
}

async fn store_all(mut events: Receiver<Event>) {
    while let Some(event) = events.recv().await {
        store(event).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let queue = if arguments.fixed {
        let (queue, events) = mpsc::channel(100);
        tokio::spawn(store_all(events));
        Queue::Bounded(queue)
    } else {
        let (queue, events) = mpsc::unbounded_channel();
        tokio::spawn(store_all_unbounded(events));
        Queue::Unbounded(queue)
    };
    let routes = Router::new().route("/event", get(event)).with_state(queue);
    field::serve(&arguments, routes).await
}
