//! An accept loop that waits for the first bytes of each client: one that sends nothing keeps all others out.
//!
//! Reports: penguin-rs#39, flow#2333, postel#25, where a TLS handshake is awaited in the loop. This one looks at the first bytes
//! to tell protocols apart.

use std::time::Duration;

use debug_endpoints::{AwaitProfiler, DebugEndpoints};
use field::Arguments;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Returns whether a client speaks HTTP, by its first bytes.
async fn speaks_http(stream: &TcpStream) -> bool {
    let mut first = [0; 4];
    let seen = stream.peek(&mut first).await;
    seen.is_ok_and(|length| length > 0 && first[0].is_ascii_uppercase())
}

async fn serve(stream: TcpStream, profiler: AwaitProfiler) {
    field::serve_connection(stream, profiler, Duration::from_millis(2)).await;
}

async fn accept_all(
    listener: TcpListener,
    profiler: AwaitProfiler,
    fixed: bool,
) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let profiler = profiler.clone();
        if fixed {
            tokio::spawn(async move {
                let is_http = timeout(Duration::from_secs(3), speaks_http(&stream)).await;
                if is_http == Ok(true) {
                    serve(stream, profiler).await;
                }
            });
        } else if speaks_http(&stream).await {
            tokio::spawn(serve(stream, profiler));
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    accept_all(listener, debug.profiler().clone(), arguments.fixed).await
}
