//! A task that forwards events is spawned for each session, and none ends when its client leaves.
//!
//! Report: agentgateway/agentgateway#1536.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;
use futures::StreamExt;
use futures::channel::mpsc;
use tokio::sync::broadcast;

#[derive(Clone)]
struct Feed {
    events: broadcast::Sender<String>,
    is_fixed: bool,
}

async fn events(State(feed): State<Feed>) -> Body {
    let mut upstream = feed.events.subscribe();
    let (to_client, from_task) = mpsc::unbounded::<String>();
    tokio::spawn(async move {
        // To resume the session later.
        let mut seen = Vec::new();
        while let Ok(event) = upstream.recv().await {
            seen.push(event.clone());
            let sent = to_client.unbounded_send(event);
            // The fault: without this, it goes on for ever.
            if feed.is_fixed && sent.is_err() {
                break;
            }
        }
    });
    let lines = from_task.map(|event| Ok::<_, Infallible>(format!("data: {event}\n\n")));
    Body::from_stream(lines)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (events_of_all, _) = broadcast::channel(1024);
    let source = events_of_all.clone();
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        loop {
            tick.tick().await;
            let _ = source.send("e".repeat(500));
        }
    });
    let feed = Feed {
        events: events_of_all,
        is_fixed: arguments.fixed,
    };
    let routes = Router::new().route("/events", get(events)).with_state(feed);
    field::serve(&arguments, routes).await
}
