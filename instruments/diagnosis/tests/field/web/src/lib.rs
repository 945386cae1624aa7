//! Common parts of the cases: their arguments, the endpoints as the book adds them, an upstream, and work.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use clap::Parser;
use debug_endpoints::{AwaitProfiler, DebugEndpoints};
use hyper::body::Incoming as Body;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// A service with one fault that people reported.
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// Port on which the service listens.
    #[arg(long, env, default_value_t = 8080)]
    pub port: u16,
    /// Port on which the debug endpoints listen; without it there are none.
    #[arg(long)]
    pub admin: Option<u16>,
    /// Runs without the fault.
    #[arg(long)]
    pub fixed: bool,
}

impl Arguments {
    /// Returns the arguments of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::parse()
    }

    /// Lets the endpoints listen on their port, if there is one.
    ///
    /// # Errors
    ///
    /// When the port is taken.
    pub fn listen(&self, debug: &DebugEndpoints) -> std::io::Result<()> {
        if let Some(port) = self.admin {
            let address = debug.listen((Ipv4Addr::LOCALHOST, port));
            let address = address.map_err(std::io::Error::other)?;
            println!("profiles are at http://{address}/debug");
        }
        Ok(())
    }
}

/// Serves `routes` and `/health` until the process ends.
///
/// # Errors
///
/// When a port is taken.
pub async fn serve(arguments: &Arguments, routes: Router) -> std::io::Result<()> {
    serve_with(arguments, routes, true).await
}

/// Serves as [`serve`] does, on connections with or without the option `TCP_NODELAY`.
///
/// # Errors
///
/// When a port is taken.
pub async fn serve_with(
    arguments: &Arguments,
    routes: Router,
    is_nodelay: bool,
) -> std::io::Result<()> {
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let app = routes
        .route("/health", get(async || "ok"))
        .layer(debug.layer());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    println!("the service is at http://{}", listener.local_addr()?);
    let listener = listener.tap_io(move |stream| {
        // A client that has gone already needs no option.
        let _ = stream.set_nodelay(is_nodelay);
    });
    axum::serve(listener, app).await
}

/// Runs another service on a runtime and thread of its own; yields its address.
///
/// # Panics
///
/// When this machine has no port left.
pub fn beside<Serving>(serve: impl FnOnce(TcpListener) -> Serving + Send + 'static) -> SocketAddr
where
    Serving: Future<Output = std::io::Result<()>>,
{
    let (address, addresses) = mpsc::channel();
    std::thread::spawn(move || -> std::io::Result<()> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build()?.block_on(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let _ = address.send(listener.local_addr()?);
            serve(listener).await
        })
    });
    addresses.recv().expect("the other service has a port")
}

/// Runs another service that answers everything after some time; yields its address.
pub fn answering_after(time: Duration) -> SocketAddr {
    beside(async move |listener: TcpListener| {
        let answer = move || async move {
            tokio::time::sleep(time).await;
            "x".repeat(200)
        };
        axum::serve(listener, Router::new().fallback(answer)).await
    })
}

/// Computes for so long, by the clock.
pub fn compute(duration: Duration) {
    let began = Instant::now();
    let mut number = 3_u64;
    while began.elapsed() < duration {
        for _ in 0..1_000 {
            number = std::hint::black_box(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
        }
    }
}

/// Answers the requests of one connection, each after `time`, until its client leaves.
pub async fn serve_connection(stream: TcpStream, profiler: AwaitProfiler, time: Duration) {
    let answer = hyper::service::service_fn(|request: Request<Body>| {
        let path = request.uri().path().to_owned();
        profiler.wrap(path, async move {
            tokio::time::sleep(time).await;
            Ok::<_, Infallible>(Response::new("hello".to_owned()))
        })
    });
    let server = hyper::server::conn::http1::Builder::new();
    // A client that leaves in the middle is no fault.
    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
}
