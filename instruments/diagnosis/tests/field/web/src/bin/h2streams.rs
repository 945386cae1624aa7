//! Calls of 10 ms that take 47: all go through one HTTP/2 connection, the other service allows eight streams on it, and
//! the rest queue in the client, unseen.
//!
//! Reports: seanmonstar/reqwest#2346, seanmonstar/reqwest#976.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use reqwest::Client;
use tokio::net::TcpListener;

async fn ten_milliseconds() -> &'static str {
    tokio::time::sleep(Duration::from_millis(10)).await;
    "up"
}

/// Another service, which allows eight streams on a connection.
async fn upstream(listener: TcpListener) -> std::io::Result<()> {
    let app = Router::new().route("/", get(ten_milliseconds));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new()).max_concurrent_streams(8);
        let service = TowerToHyperService::new(app.clone());
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
    }
}

#[derive(Clone)]
struct Upstream {
    /// One connection each.
    clients: Arc<[Client]>,
    next: Arc<AtomicUsize>,
    address: SocketAddr,
}

impl Upstream {
    async fn ask(&self) -> reqwest::Result<String> {
        let next = self.next.fetch_add(1, Relaxed) % self.clients.len();
        let url = format!("http://{}/", self.address);
        self.clients[next].get(url).send().await?.text().await
    }
}

async fn quote(State(upstream): State<Upstream>) -> Result<String, StatusCode> {
    upstream.ask().await.map_err(|_| StatusCode::BAD_GATEWAY)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let address = field::beside(upstream);
    // The fault: one client, so one connection.
    let connections = if arguments.fixed { 8 } else { 1 };
    let clients = (0..connections).map(|_| Client::builder().http2_prior_knowledge().build());
    let upstream = Upstream {
        clients: clients.collect::<Result<_, _>>()?,
        next: Arc::default(),
        address,
    };
    let routes = Router::new().route("/quote", get(quote));
    field::serve(&arguments, routes.with_state(upstream)).await?;
    Ok(())
}
