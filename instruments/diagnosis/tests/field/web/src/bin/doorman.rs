//! A limit of connections that idle clients use up: the accept loop waits for a permit, which a connection keeps until its
//! client leaves. With `--fixed` a request takes the permit.
//!
//! A neighbour of `edge`: connections wait to be accepted, for another reason.

use std::sync::Arc;
use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use field::Arguments;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections that are let in.
const LIMIT: usize = 2;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let doors = Arc::new(Semaphore::new(LIMIT));
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let permit = if arguments.fixed {
            None
        } else {
            doors.clone().acquire_owned().await.ok()
        };
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let profiler = debug.profiler().clone();
        tokio::spawn(async move {
            field::serve_connection(stream, profiler, Duration::from_millis(2)).await;
            drop(permit);
        });
    }
}
