//! A protocol of lines whose answers are written in three small pieces, without `TCP_NODELAY`. With `--fixed` that is set.
//!
//! A neighbour of `nagle`, without HTTP.

use debug_endpoints::DebugEndpoints;
use field::Arguments;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

struct Client {
    socket: BufReader<TcpStream>,
}

impl Client {
    async fn answer(&mut self, line: &str) -> std::io::Result<()> {
        let price = line.len().to_string();
        // The fault: the second piece waits until the first one is acknowledged.
        self.socket.write_all(b"price ").await?;
        self.socket.write_all(price.as_bytes()).await?;
        self.socket.write_all(b"\n").await
    }

    async fn serve(mut self) -> std::io::Result<()> {
        let mut line = String::new();
        while self.socket.read_line(&mut line).await? > 0 {
            self.answer(&line).await?;
            line.clear();
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(arguments.fixed)?;
        let socket = BufReader::new(socket);
        tokio::spawn(debug.profiler().wrap("client", Client { socket }.serve()));
    }
}
