//! A closed-loop load: every connection sends its next request when it has the
//! answer to the last.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Runs until the server goes away or the task is dropped.
pub(crate) async fn get(server: SocketAddr, path: &str, connections: usize) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut all = JoinSet::new();
    for _ in 0..connections {
        let request = request.clone();
        all.spawn(async move { connection(server, request.as_bytes()).await });
    }
    while all.join_next().await.is_some() {}
}

async fn connection(server: SocketAddr, request: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    // The answers of these examples are small enough to come in one piece.
    let mut answer = [0; 4096];
    loop {
        stream.write_all(request).await?;
        if stream.read(&mut answer).await? == 0 {
            return Ok(());
        }
    }
}
