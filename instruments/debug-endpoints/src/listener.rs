//! A listener of the endpoints' own, on a thread of its own, so that a stalled service still answers.
//!
//! Whoever can reach the port may connect, so a connection is worth nothing by itself: each answers one request,
//! and where there are too many, the oldest that no request is being answered on makes room for the newest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{self, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::runtimes::OF_LISTENERS;

/// A client that has not sent its headers by then is gone.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);

/// One that has not read the whole answer by then, too.
const READ_WITHIN: Duration = Duration::from_secs(60);

/// More are never open at once.
const MOST_CONNECTIONS: usize = 64;

/// File descriptors that are kept for when the service has used up all others.
const SPARE: usize = 8;

/// Answers `listener` from a new thread until the process ends; yields its address.
pub(crate) fn serve(listener: net::TcpListener, routes: Router) -> std::io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Symbols are looked up and profiles drawn there.
        .max_blocking_threads(4)
        .build()?;
    OF_LISTENERS.fetch_add(1, Relaxed);
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || runtime.block_on(answer(listener, routes)))?;
    Ok(address)
}

/// In HTTP/1 alone: `axum::serve` speaks HTTP/2 as well where anything else in the build asks for it.
async fn answer(listener: net::TcpListener, routes: Router) -> std::io::Result<Infallible> {
    let spare = Arc::new(Spare::of(listener.try_clone()?));
    let listener = TcpListener::from_std(listener)?;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        // A place is never held by a client that has its answer, or was refused one.
        .keep_alive(false);
    let mut open = Open::default();
    loop {
        let stream = accept(&listener, &spare, &mut open).await;
        while open.is_full() && !open.end_oldest() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let is_answering = Arc::new(AtomicBool::new(false));
        let connection = connection(stream, &http, &routes, Arc::clone(&is_answering));
        let spare = Arc::clone(&spare);
        let task = tokio::spawn(async move {
            connection.await;
            spare.refill();
        });
        open.0.push_back((task.abort_handle(), is_answering));
        // It is to read what has come before others in the queue push it out.
        tokio::task::yield_now().await;
    }
}

/// Answers the one request of `stream`. A client that hangs up ends its connection and nothing else.
fn connection(
    stream: TcpStream,
    http: &http1::Builder,
    routes: &Router,
    is_answering: Arc<AtomicBool>,
) -> impl Future<Output = ()> + Send + use<> {
    let answered = Arc::new(Notify::new());
    let told = Arc::clone(&answered);
    let routes = TowerToHyperService::new(routes.clone());
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (routes, told, is_answering) =
            (routes.clone(), Arc::clone(&told), is_answering.clone());
        async move {
            is_answering.store(true, Relaxed);
            let answer = hyper::service::Service::call(&routes, request).await;
            is_answering.store(false, Relaxed);
            told.notify_one();
            answer
        }
    });
    let connection = http.serve_connection(TokioIo::new(stream), service);
    async move {
        let unread = async {
            answered.notified().await;
            tokio::time::sleep(READ_WITHIN).await;
        };
        tokio::select! {
            _ = connection => {}
            () = unread => {}
        }
    }
}

async fn accept(listener: &TcpListener, spare: &Spare, open: &mut Open) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The service is out of file descriptors, most likely. One that is let go is taken at once.
            Err(_) if spare.let_go() => {}
            Err(_) => {
                open.end_oldest();
                tokio::time::sleep(Duration::from_millis(10)).await;
                spare.refill();
            }
        }
    }
}

/// The connections that there are, oldest first, and whether a request is being answered on each.
#[derive(Default)]
struct Open(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl Open {
    fn is_full(&mut self) -> bool {
        self.0.retain(|(task, _)| !task.is_finished());
        self.0.len() >= MOST_CONNECTIONS
    }

    /// Ends the oldest on which nothing is being answered, if there is one. A request that is refused is none:
    /// that is decided in one go.
    fn end_oldest(&mut self) -> bool {
        let oldest = self.0.iter().position(|(_, busy)| !busy.load(Relaxed));
        let oldest = oldest.and_then(|oldest| self.0.remove(oldest));
        oldest.inspect(|(task, _)| task.abort()).is_some()
    }
}

/// File descriptors that stand for nothing: the listener again.
struct Spare {
    listener: net::TcpListener,
    kept: Mutex<Vec<net::TcpListener>>,
}

impl Spare {
    fn of(listener: net::TcpListener) -> Self {
        let kept = Mutex::default();
        let spare = Self { listener, kept };
        spare.refill();
        spare
    }

    fn refill(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.len() < SPARE {
            match self.listener.try_clone() {
                Ok(one) => kept.push(one),
                // The service needs them; when there are some again, these will be, too.
                Err(_) => return,
            }
        }
    }

    /// Whether there was one.
    fn let_go(&self) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pop().is_some()
    }
}
