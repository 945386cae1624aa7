//! A loop that yields in place of waiting: it asks a queue again and again whether there is a job. With `--fixed` it waits until
//! one comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

type Job = oneshot::Sender<u64>;

#[derive(Default)]
struct Spool {
    jobs: Mutex<VecDeque<Job>>,
    came: Notify,
    fixed: bool,
}

impl Spool {
    fn take(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.pop_front()
    }

    fn put(&self, job: Job) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push_back(job);
        self.came.notify_one();
    }

    async fn next(&self) -> Job {
        loop {
            if let Some(job) = self.take() {
                return job;
            }
            if self.fixed {
                self.came.notified().await;
            } else {
                // The fault: it is ready again at once.
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn print(spool: Arc<Spool>) {
    loop {
        let job = spool.next().await;
        sleep(Duration::from_millis(1)).await;
        let _ = job.send(7);
    }
}

async fn label(State(spool): State<Arc<Spool>>) -> Result<String, StatusCode> {
    let (job, printed) = oneshot::channel();
    spool.put(job);
    let pages = printed.await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(pages.to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let spool = Arc::new(Spool {
        fixed: arguments.fixed,
        ..Spool::default()
    });
    tokio::spawn(print(spool.clone()));
    let app = Router::new().route("/label", get(label)).with_state(spool);
    field::serve(&arguments, app).await
}
