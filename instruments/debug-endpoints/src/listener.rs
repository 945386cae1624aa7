//! A listener of the endpoints' own, on a thread of its own, so that a stalled service still answers.

use std::convert::Infallible;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// A client that has not sent its headers by then is gone.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);

/// Further ones wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 64;

/// Answers `listener` from a new thread until the process ends; yields its address.
pub(crate) fn serve(listener: net::TcpListener, routes: Router) -> std::io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Symbols are looked up there, for one profile at a time.
        .max_blocking_threads(4)
        .build()?;
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || runtime.block_on(answer(listener, routes)))?;
    Ok(address)
}

/// In HTTP/1 alone: `axum::serve` speaks HTTP/2 as well where anything else in the build asks for it.
async fn answer(listener: net::TcpListener, routes: Router) -> std::io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN);
    loop {
        // Never closed, so there is a place in the end.
        let place = Arc::clone(&places).acquire_owned().await;
        let stream = TokioIo::new(accept(&listener).await);
        let connection = http.serve_connection(stream, TowerToHyperService::new(routes.clone()));
        tokio::spawn(async move {
            // A client that hangs up ends its connection and nothing else.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Out of file descriptors, most likely: let some connections end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
