//! Finished tasks that nobody joins: a `JoinSet` keeps their results.
//!
//! Report: lightningdevkit/ldk-node#997. A payment node handles each event of its peers in a task.

use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

struct Node {
    tasks: JoinSet<u64>,
    fixed: bool,
}

impl Node {
    fn handle(&mut self, event: String) {
        if self.fixed {
            while self.tasks.try_join_next().is_some() {}
        }
        self.tasks.spawn(process(event));
    }
}

async fn process(event: String) -> u64 {
    let mut packet = [0u8; 1300];
    packet[..event.len().min(1300)].copy_from_slice(&event.as_bytes()[..event.len().min(1300)]);
    tokio::time::sleep(Duration::from_millis(3)).await; // the peer answers
    packet.iter().map(|byte| u64::from(*byte)).sum()
}

async fn peer(socket: TcpStream, events: tokio::sync::mpsc::Sender<String>) {
    let mut lines = BufReader::new(socket).lines();
    while let Ok(Some(event)) = lines.next_line().await {
        let _ = events.send(event).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = field::Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let (sender, mut events) = tokio::sync::mpsc::channel(100);
    let mut node = Node {
        tasks: JoinSet::new(),
        fixed: arguments.fixed,
    };
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            node.handle(event);
        }
    });
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(debug.profiler().wrap("peer", peer(socket, sender.clone())));
    }
}
