//! A server that behaves as a test tells it to, well or badly.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reaction to one request.
pub(crate) enum Reaction {
    /// Sends these bytes, and keeps the connection open.
    Answer(Vec<u8>),
    /// Sends each of these parts after a while.
    Parts(Vec<(Duration, Vec<u8>)>),
    /// Sends these bytes, then closes the connection.
    Last(Vec<u8>),
    /// Sends nothing, ever.
    Silence,
}

type React = dyn Fn(usize, &str) -> Reaction + Send + Sync;

/// Returns `body` in an ordinary answer.
pub(crate) fn ok(body: &str) -> Reaction {
    Reaction::Answer(answer("200 OK", body))
}

/// Returns `body` in an ordinary answer after so many milliseconds.
pub(crate) fn late(ms: u64, body: &str) -> Reaction {
    Reaction::Parts(vec![(Duration::from_millis(ms), answer("200 OK", body))])
}

pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A server on a thread of its own, which serves until the test process ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server. `react` gets the number of the request over all connections, from 0, and its text.
    pub(crate) fn start(react: impl Fn(usize, &str) -> Reaction + Send + Sync + 'static) -> Self {
        // One server for all tests: each would be compiled for some tenths of a second.
        Self::start_one(Arc::new(react))
    }

    fn start_one(react: Arc<React>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let requests = Arc::clone(&server.requests);
        let connections = Arc::clone(&server.connections);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    connections.fetch_add(1, Ordering::Relaxed);
                    let react = Arc::clone(&react);
                    let requests = Arc::clone(&requests);
                    tokio::spawn(async move { serve(stream, &requests, &*react).await });
                }
            });
        });
        server
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(mut stream: TcpStream, requests: &AtomicUsize, react: &React) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        let text = loop {
            if let Some(text) = whole_request(&received) {
                break text;
            }
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        received.clear();
        match react(requests.fetch_add(1, Ordering::Relaxed), &text) {
            Reaction::Answer(bytes) => stream.write_all(&bytes).await?,
            Reaction::Parts(parts) => {
                for (wait, bytes) in parts {
                    tokio::time::sleep(wait).await;
                    stream.write_all(&bytes).await?;
                }
            }
            Reaction::Last(bytes) => return stream.write_all(&bytes).await,
            Reaction::Silence => {}
        }
    }
}

fn whole_request(received: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(received);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    (body.len() == length).then(|| text.into_owned())
}
