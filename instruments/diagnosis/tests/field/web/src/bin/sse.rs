//! Server-sent events that come late: each event of each stream waits for one lock, which is held across an await.
//!
//! The work is in the body, after the handler has returned its answer. `/endless` is a stream without a fault that never
//! ends.
//!
//! Reports: OpenCTI-Platform/opencti#13908; the same with streams of gRPC.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use field::Arguments;
use futures::stream;
use tokio::sync::Mutex;

#[derive(Clone)]
struct Feed {
    lock: Arc<Mutex<()>>,
    is_fixed: bool,
}

impl Feed {
    /// Reads what is new.
    async fn next(&self, number: u32) -> Bytes {
        let read = || tokio::time::sleep(Duration::from_millis(2));
        if self.is_fixed {
            read().await;
        } else {
            // The fault: one stream at a time.
            let _guard = self.lock.lock().await;
            read().await;
        }
        Bytes::from(format!("data: {number}\n\n"))
    }
}

fn stream_of(feed: Feed, events: u32) -> impl IntoResponse {
    let events = stream::unfold((feed, 0), move |(feed, number)| async move {
        if number == events {
            return None;
        }
        let event = feed.next(number).await;
        Some((Ok::<_, Infallible>(event), (feed, number + 1)))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(events))
}

async fn events(State(feed): State<Feed>) -> impl IntoResponse {
    stream_of(feed, 20)
}

async fn endless(State(feed): State<Feed>) -> impl IntoResponse {
    let is_fixed = true;
    stream_of(Feed { is_fixed, ..feed }, u32::MAX)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let feed = Feed {
        lock: Arc::default(),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/events", get(events))
        .route("/endless", get(endless))
        .with_state(feed);
    field::serve(&arguments, routes).await
}
