//! A task that asks its channel again and again, without a yield, and keeps a thread of the runtime. With `--fixed` it waits for
//! the next event.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::sleep;

/// Events of a full batch.
const BATCH: usize = 50;

async fn write(batch: &mut Vec<u64>) {
    sleep(Duration::from_millis(2)).await;
    batch.clear();
}

async fn export(mut events: Receiver<u64>) {
    let mut batch = Vec::new();
    loop {
        match events.try_recv() {
            Ok(event) => batch.push(event),
            // The fault: it asks again at once.
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return,
        }
        if batch.len() >= BATCH {
            write(&mut batch).await;
        }
    }
}

async fn export_when_they_come(mut events: Receiver<u64>) {
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, BATCH).await > 0 {
        write(&mut batch).await;
    }
}

async fn event(State(events): State<Sender<u64>>) -> &'static str {
    let _ = events.send(7).await;
    "noted"
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (sender, events) = mpsc::channel(1_000);
    if arguments.fixed {
        tokio::spawn(export_when_they_come(events));
    } else {
        tokio::spawn(export(events));
    }
    let app = Router::new()
        .route("/event", get(event))
        .with_state(sender);
    field::serve(&arguments, app).await
}
