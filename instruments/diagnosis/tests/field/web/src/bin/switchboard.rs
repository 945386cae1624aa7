//! Replies that wake everybody: all callers receive all of them, and each looks for its own. With `--fixed` a reply goes to the
//! caller who waits for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::sleep;

/// Time that the backend takes for a call.
const WORK: Duration = Duration::from_millis(50);

#[derive(Clone)]
struct Reply {
    number: u64,
    text: String,
}

struct Board {
    last: AtomicU64,
    calls: mpsc::UnboundedSender<u64>,
    replies: broadcast::Sender<Reply>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Reply>>>,
    fixed: bool,
}

impl Board {
    async fn call(&self) -> Option<Reply> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        if self.fixed {
            let replied = self.expect(number);
            self.calls.send(number).ok()?;
            return replied.await.ok();
        }
        let mut replies = self.replies.subscribe();
        self.calls.send(number).ok()?;
        loop {
            // The fault: nearly all of them are for others.
            match replies.recv().await {
                Ok(reply) if reply.number == number => return Some(reply),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn expect(&self, number: u64) -> oneshot::Receiver<Reply> {
        let (reply, replied) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(number, reply);
        replied
    }

    fn hand_out(&self, reply: Reply) {
        if !self.fixed {
            let _ = self.replies.send(reply);
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = waiting.remove(&reply.number) {
            let _ = caller.send(reply);
        }
    }
}

/// Stands for the backend, with all calls on one connection.
async fn answer(mut calls: mpsc::UnboundedReceiver<u64>, board: Arc<Board>) {
    while let Some(number) = calls.recv().await {
        let board = board.clone();
        tokio::spawn(async move {
            sleep(WORK).await;
            let text = format!("reply {number}");
            board.hand_out(Reply { number, text });
        });
    }
}

async fn call(State(board): State<Arc<Board>>) -> Result<String, StatusCode> {
    let reply = board.call().await;
    let reply = reply.ok_or(StatusCode::BAD_GATEWAY)?;
    Ok(reply.text)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (calls, received) = mpsc::unbounded_channel();
    let board = Arc::new(Board {
        last: AtomicU64::new(1),
        calls,
        replies: broadcast::channel(4096).0,
        waiting: Mutex::default(),
        fixed: arguments.fixed,
    });
    tokio::spawn(answer(received, board.clone()));
    let app = Router::new().route("/call", get(call)).with_state(board);
    field::serve(&arguments, app).await
}
