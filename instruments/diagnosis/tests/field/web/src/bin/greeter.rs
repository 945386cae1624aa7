//! An accept loop that asks another service about each client, one after the other. With `--fixed` the task of each connection
//! asks.
//!
//! A neighbour of `edge`: connections wait to be accepted, and every client is fast.

use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use field::Arguments;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Returns whether a client may come in, as a list of addresses elsewhere says.
async fn may_enter() -> bool {
    sleep(Duration::from_millis(40)).await;
    true
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let is_known = arguments.fixed || may_enter().await;
        let (profiler, fixed) = (debug.profiler().clone(), arguments.fixed);
        tokio::spawn(async move {
            if is_known && (!fixed || may_enter().await) {
                field::serve_connection(stream, profiler, Duration::from_millis(2)).await;
            }
        });
    }
}
