//! Datagrams that the kernel drops: the loop that reads a socket also inserts each batch, and nobody reads meanwhile. With `--fixed`
//! another task inserts.
//!
//! Reports: dusk-network/kadcast#87, rotel-dev/rotel#92.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use field::Arguments;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{interval, sleep};

/// Measurements of a full batch.
const BATCH: usize = 500;
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// A name and a value.
type Batch = Vec<(String, f64)>;

/// Stands for a database on another machine.
struct Database;

impl Database {
    async fn insert(&self, _batch: Batch) {
        sleep(Duration::from_millis(300)).await;
    }
}

fn parse(datagram: &[u8]) -> Option<(String, f64)> {
    let text = std::str::from_utf8(datagram).ok()?;
    let (name, value) = text.split_once(':')?;
    Some((name.to_owned(), value.trim().parse().ok()?))
}

async fn collect(
    socket: UdpSocket,
    database: Database,
    full: Option<mpsc::Sender<Batch>>,
) -> std::io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut every = interval(FLUSH_EVERY);
    let mut buffer = [0; 1500];
    loop {
        let flush = tokio::select! {
            received = socket.recv(&mut buffer) => {
                batch.extend(parse(&buffer[..received?]));
                batch.len() >= BATCH
            }
            _ = every.tick() => !batch.is_empty(),
        };
        if !flush {
            continue;
        }
        let batch = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
        match &full {
            // If the database is too slow, a batch is lost, and no other datagram.
            Some(full) => drop(full.try_send(batch)),
            // The fault: nobody reads the socket until this is done.
            None => database.insert(batch).await,
        }
    }
}

async fn insert_all(mut full: mpsc::Receiver<Batch>) {
    while let Some(batch) = full.recv().await {
        Database.insert(batch).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    let full = arguments.fixed.then(|| {
        let (full, batches) = mpsc::channel(16);
        tokio::spawn(insert_all(batches));
        full
    });
    tokio::spawn(collect(socket, Database, full));
    field::serve(&arguments, Router::new()).await
}
