//! One record in flight: each waits for its batch, before the next one is read.
//!
//! Reports: fede1024/rust-rdkafka#464, #695. Events come one a line, and a message log stores them in batches.

use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use futures::StreamExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

type Record = (String, oneshot::Sender<u64>);

#[derive(Clone)]
struct Producer(mpsc::Sender<Record>);

impl Producer {
    fn start() -> Producer {
        let (sender, records) = mpsc::channel(1000);
        tokio::spawn(send_batches(records));
        Producer(sender)
    }

    /// Returns the offset, once the log has stored the record.
    async fn send(&self, record: String) -> u64 {
        let (done, delivered) = oneshot::channel();
        self.0
            .send((record, done))
            .await
            .expect("the producer runs");
        delivered.await.expect("the log answers")
    }
}

/// A batch is sent when it is full, or five milliseconds after its first record.
async fn send_batches(mut records: mpsc::Receiver<Record>) {
    let mut offset = 0;
    while let Some(first) = records.recv().await {
        let mut batch = vec![first];
        let fill = async {
            while batch.len() < 500 {
                let Some(record) = records.recv().await else {
                    break;
                };
                batch.push(record);
            }
        };
        let _ = timeout(Duration::from_millis(5), fill).await;
        sleep(Duration::from_millis(2)).await; // the broker stores the batch
        for (_, done) in batch {
            offset += 1;
            let _ = done.send(offset);
        }
    }
}

async fn take(mut socket: TcpStream, producer: Producer, fixed: bool) {
    let _ = socket.set_nodelay(true);
    let (read, mut write) = socket.split();
    let mut lines = BufReader::new(read).lines();
    if fixed {
        let lines = futures::stream::unfold(lines, async |mut lines| {
            let line = lines.next_line().await.ok().flatten()?;
            Some((line, lines))
        });
        let mut stored = std::pin::pin!(lines.map(|line| producer.send(line)).buffered(500));
        while let Some(offset) = stored.next().await {
            let _ = write.write_all(format!("{offset}\n").as_bytes()).await;
        }
    } else {
        while let Ok(Some(line)) = lines.next_line().await {
            let offset = producer.send(line).await;
            let _ = write.write_all(format!("{offset}\n").as_bytes()).await;
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = field::Arguments::of_process();
    let debug = DebugEndpoints::new();
    arguments.listen(&debug)?;
    let producer = Producer::start();
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(
            debug
                .profiler()
                .wrap("events", take(socket, producer.clone(), arguments.fixed)),
        );
    }
}
