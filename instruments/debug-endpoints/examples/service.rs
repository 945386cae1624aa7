//! An axum service with the endpoints, and a load on it, so that there is something to see.
//!
//! ```sh
//! cargo run --release -p debug-endpoints --example service
//! curl -o cpu.svg 'http://127.0.0.1:6060/debug/pprof/flamegraph?seconds=5'
//! curl -o waits.svg 'http://127.0.0.1:6060/debug/await?seconds=5&format=svg'
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use debug_endpoints::DebugEndpoints;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// One connection for all requests: the fault that the await profile shows.
static CONNECTION: Mutex<()> = Mutex::const_new(());

async fn checkout() -> &'static str {
    let _connection = CONNECTION.lock().await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    "paid"
}

/// Computes, which the CPU profile shows.
async fn search() -> String {
    let names = (0..2_000).map(|number: u32| format!("tea {number}"));
    names.filter(|name| name.ends_with('7')).count().to_string()
}

/// Requests `path` again and again, as one user.
async fn user(service: SocketAddr, path: &str) -> std::io::Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    loop {
        let mut stream = TcpStream::connect(service).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_end(&mut Vec::new()).await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let debug = DebugEndpoints::new();
    let admin = debug
        .listen("127.0.0.1:6060")
        .map_err(std::io::Error::other)?;
    let app = Router::new()
        .route("/checkout", get(checkout))
        .route("/search", get(search))
        .layer(debug.layer());
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let service = listener.local_addr()?;
    for number in 0..20 {
        tokio::spawn(user(
            service,
            if number < 15 { "/checkout" } else { "/search" },
        ));
    }
    println!("profiles are at http://{admin}/debug");
    axum::serve(listener, app).await
}
