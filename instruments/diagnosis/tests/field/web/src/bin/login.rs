//! A password is hashed in an async handler of warp, which blocks all requests of its worker.
//!
//! Reports: kaj/warp-diesel-ructe-sample#4, vetis-server/vetis#73.

use std::net::Ipv4Addr;

use debug_endpoints::DebugEndpoints;
use field::Arguments;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::Layer;
use warp::Filter;

/// Cost of bcrypt; more is usual.
const COST: u32 = 8;

async fn login(user: String, is_fixed: bool) -> Result<String, warp::Rejection> {
    let hash = if is_fixed {
        tokio::task::spawn_blocking(move || bcrypt::hash(user, COST))
            .await
            .ok()
    } else {
        // The fault: some milliseconds of computing on a worker.
        Some(bcrypt::hash(user, COST))
    };
    hash.and_then(Result::ok).ok_or_else(warp::reject)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let debug = DebugEndpoints::new();
    if let Some(port) = arguments.admin {
        debug
            .listen((Ipv4Addr::LOCALHOST, port))
            .map_err(std::io::Error::other)?;
    }
    let is_fixed = arguments.fixed;
    let login = warp::path!("login" / String).and_then(move |user| login(user, is_fixed));
    let page = warp::path!("page").map(|| "a page".to_owned());
    let health = warp::path!("health").map(|| "ok".to_owned());
    let routes = login.or(page).or(health);
    let service = debug
        .profiler()
        .layer()
        .with_bodies()
        .layer(warp::service(routes));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    println!("the service is at http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
