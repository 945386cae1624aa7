//! Clients hang up, and their jobs still take the only engine.
//!
//! Reports: timtoole02/Camelid#675, modelcontextprotocol/rust-sdk#857. Clients wait for a quarter of a second: sixteen
//! of them ask for more than the engine can do.

use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::oneshot;

type Job = oneshot::Sender<&'static str>;

/// Jobs that the engine is done with before their clients leave.
const IN_TIME: usize = 4;

async fn generate(State(engine): State<mpsc::SyncSender<Job>>) -> Result<&'static str, StatusCode> {
    let (reply, answer) = oneshot::channel();
    engine
        .try_send(reply)
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    answer.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

fn engine(jobs: mpsc::Receiver<Job>, is_fixed: bool) {
    for reply in jobs {
        // The fault as well: without this, jobs for clients who have left are done as well.
        if is_fixed && reply.is_closed() {
            continue;
        }
        field::compute(Duration::from_millis(40));
        let _ = reply.send("done");
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let is_fixed = arguments.fixed;
    // The fault: it is longer than clients wait.
    let length = if is_fixed { IN_TIME } else { 100_000 };
    let (jobs, queue) = mpsc::sync_channel(length);
    let thread = std::thread::Builder::new().name("engine".to_owned());
    thread.spawn(move || engine(queue, is_fixed))?;
    let routes = Router::new()
        .route("/generate", get(generate))
        .with_state(jobs);
    field::serve(&arguments, routes).await
}
