//! The bystanders: a timer and `/ping`, which have nothing to do with the batches.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

const TICK: Duration = Duration::from_millis(5);

/// How late the timer's ticks were, in ms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Late(Arc<Mutex<Vec<f64>>>);

impl Late {
    fn note(&self, late: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(late.as_secs_f64() * 1e3);
    }

    /// All so far.
    pub(crate) fn taken(&self) -> Vec<f64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A timer of 5 ms, again and again. Tokio's timers have whole milliseconds, so up to about one is
/// no lateness.
pub(crate) async fn tick(late: Late) {
    let mut due = tokio::time::Instant::now() + TICK;
    loop {
        tokio::time::sleep_until(due).await;
        let now = tokio::time::Instant::now();
        late.note(now - due);
        due = (due + TICK).max(now);
    }
}

/// Asks `/ping` of a server on the current runtime, every 5 ms, from a thread of its own.
#[derive(Debug)]
pub(crate) struct Pinger {
    done: Arc<AtomicBool>,
    asks: JoinHandle<io::Result<Vec<f64>>>,
}

impl Pinger {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let routes = Router::new().route("/ping", get(async || "pong"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let asks = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            ask(&mut stream, &seen)
        });
        Ok(Self { done, asks })
    }

    /// Each ping's time in ms, from the moment it was due.
    pub(crate) fn stop(self) -> io::Result<Vec<f64>> {
        self.done.store(true, Ordering::Relaxed);
        let asked = self.asks.join();
        asked.unwrap_or_else(|_| Err(io::Error::other("the pinger panicked")))
    }
}

fn ask(stream: &mut TcpStream, done: &AtomicBool) -> io::Result<Vec<f64>> {
    let mut taken = Vec::new();
    let mut due = Instant::now() + TICK;
    let mut answer = [0; 1024];
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        stream.write_all(b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let mut length = 0;
        while !answer[..length].ends_with(b"pong") {
            length += match stream.read(&mut answer[length..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => more,
            };
        }
        taken.push(due.elapsed().as_secs_f64() * 1e3);
        // An open loop: what was due meanwhile is asked at once, and has waited since then.
        due += TICK;
    }
    Ok(taken)
}
