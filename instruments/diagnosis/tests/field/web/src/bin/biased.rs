//! A `select!` with `biased;`: a queue that is always ready starves the branch below it.
//!
//! Reports: paxsonsa/murmer-rs#6, stratum-mining/sv2-apps#801.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{mpsc, oneshot};

type Ask = (u64, oneshot::Sender<u64>);

async fn status(
    State(asks): State<mpsc::Sender<Ask>>,
    Path(id): Path<u64>,
) -> Result<String, StatusCode> {
    let (reply, answer) = oneshot::channel();
    let asked = asks.send((id, reply)).await;
    asked.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let answer = answer.await;
    let answer = answer.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(answer.to_string())
}

async fn supervise(mut shares: mpsc::Receiver<u64>, mut asks: mpsc::Receiver<Ask>, is_fixed: bool) {
    let mut total = 0;
    loop {
        let share = if is_fixed {
            tokio::select! {
                biased;
                Some((id, reply)) = asks.recv() => { let _ = reply.send(total + id); continue }
                Some(share) = shares.recv() => share,
            }
        } else {
            // The fault: whoever asks comes last.
            tokio::select! {
                biased;
                Some(share) = shares.recv() => share,
                Some((id, reply)) = asks.recv() => { let _ = reply.send(total + id); continue }
            }
        };
        total += share;
        // Writes the share down.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let (to_shares, shares) = mpsc::channel(64);
    let (to_asks, asks) = mpsc::channel(64);
    tokio::spawn(supervise(shares, asks, arguments.fixed));
    tokio::spawn(async move {
        for number in 1_u64.. {
            let _ = to_shares.send(1).await;
            if number % 500 == 0 {
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
        }
    });
    let routes = Router::new()
        .route("/status/{id}", get(status))
        .with_state(to_asks);
    field::serve(&arguments, routes).await
}
