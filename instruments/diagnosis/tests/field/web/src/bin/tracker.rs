//! A lock that is held while its holder sleeps: one project's rate limit holds up all of them.
//!
//! Report: bounty-challenge#9826. Issues are read from a tracker that allows each project twenty requests a second.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use warp::Filter;

const WINDOW: Duration = Duration::from_secs(1);
const ALLOWED: usize = 20;

#[derive(Default)]
struct Limiter {
    sent: HashMap<u32, VecDeque<Instant>>,
}

impl Limiter {
    /// When this project may send next; counts that request.
    fn reserve(&mut self, project: u32) -> Instant {
        let sent = self.sent.entry(project).or_default();
        let turn = if sent.len() < ALLOWED {
            Instant::now()
        } else {
            sent[0] + WINDOW
        }
        .max(Instant::now());
        sent.push_back(turn);
        if sent.len() > ALLOWED {
            sent.pop_front();
        }
        turn
    }

    async fn wait_for_turn(&mut self, project: u32) {
        let turn = self.reserve(project);
        sleep_until(turn).await;
    }
}

struct Tracker {
    limiter: Mutex<Limiter>,
    fixed: bool,
}

impl Tracker {
    async fn issue(self: Arc<Self>, project: u32, issue: u32) -> Result<String, Infallible> {
        if self.fixed {
            let turn = self.limiter.lock().await.reserve(project);
            sleep_until(turn).await;
        } else {
            self.limiter.lock().await.wait_for_turn(project).await;
        }
        sleep(Duration::from_millis(4)).await; // the tracker answers
        Ok(format!("issue {issue} of {project}"))
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = field::Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let tracker = Arc::new(Tracker {
        limiter: Mutex::default(),
        fixed: arguments.fixed,
    });
    let routes = warp::path!(u32 / "issue" / u32)
        .and_then(move |project, issue| tracker.clone().issue(project, issue));
    let service = tower::ServiceBuilder::new()
        .layer(debug.profiler().layer().with_bodies())
        .service(warp::service(routes));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
