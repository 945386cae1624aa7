//! A service without a fault that speaks HTTP/2 alone, as those of gRPC do: can it be loaded and compared?
//!
//! Report: grpc/grpc-rust#103.

use std::net::Ipv4Addr;

use axum::Router;
use axum::routing::get;
use debug_endpoints::DebugEndpoints;
use field::Arguments;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let debug = DebugEndpoints::new();
    if let Some(port) = arguments.admin {
        debug.listen((Ipv4Addr::LOCALHOST, port))?;
    }
    let app = Router::new()
        .route("/pkg.Service/Call", get(async || "ok"))
        .layer(debug.layer());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(app.clone());
        let http = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
    }
}
