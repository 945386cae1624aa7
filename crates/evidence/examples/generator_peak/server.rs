//! The least server there can be: one canned answer a request, no routing, no parsing beyond
//! the blank line that ends a request's head. It has to cost less than any generator.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 1\r\n\r\n6";

/// Serves until killed; prints its address first.
pub(crate) fn serve(delay: Duration) -> io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(answer(stream, delay));
        }
    })
}

async fn answer(mut stream: TcpStream, delay: Duration) -> io::Result<()> {
    let mut request = [0; 2048];
    let mut filled = 0;
    loop {
        let count = stream.read(&mut request[filled..]).await?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        if !request[..filled].ends_with(b"\r\n\r\n") {
            continue;
        }
        filled = 0;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        stream.write_all(ANSWER).await?;
    }
}
