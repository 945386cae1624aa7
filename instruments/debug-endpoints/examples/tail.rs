//! An axum service with a high 99th percentile, and a load on it: an update holds a lock that every request needs.
//!
//! ```sh
//! cargo run --release -p debug-endpoints --example tail
//! curl 'http://127.0.0.1:6060/debug/look?seconds=10&tail=99'
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use debug_endpoints::DebugEndpoints;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::sleep;

static CATALOGUE: Mutex<u64> = Mutex::const_new(0);

async fn item() -> String {
    let version = *CATALOGUE.lock().await;
    ask_database().await;
    format!("tea, version {version}")
}

async fn ask_database() {
    sleep(Duration::from_millis(4)).await;
}

/// Writes for 80 ms, and holds the lock for as long: the fault.
async fn update() -> &'static str {
    let mut catalogue = CATALOGUE.lock().await;
    sleep(Duration::from_millis(80)).await;
    *catalogue += 1;
    "updated"
}

/// Requests `path` again and again, as one user who pauses in between.
async fn user(service: SocketAddr, path: &str, pause: Duration) -> std::io::Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    loop {
        let mut stream = TcpStream::connect(service).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_end(&mut Vec::new()).await?;
        sleep(pause).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let debug = DebugEndpoints::new();
    let admin = debug
        .listen("127.0.0.1:6060")
        .map_err(std::io::Error::other)?;
    let app = Router::new()
        .route("/item", get(item))
        .route("/update", get(update))
        .layer(debug.layer());
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let service = listener.local_addr()?;
    for _ in 0..8 {
        tokio::spawn(user(service, "/item", Duration::ZERO));
    }
    tokio::spawn(user(service, "/update", Duration::from_millis(400)));
    println!("profiles are at http://{admin}/debug");
    axum::serve(listener, app).await
}
