//! The archive in which a service keeps what it was sent: a stand-in for an object store on a network.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use ureq::middleware::MiddlewareNext;

use crate::counters::Counters;
use crate::options::ArchiveOptions;
use crate::{locked, stand_in};

thread_local! {
    /// Calls that this thread has made so far.
    static CALLS_HERE: Cell<u64> = const { Cell::new(0) };
}

/// Calls of an archive that the calling thread has made so far, each of which it waits for.
pub(crate) fn calls_on_this_thread() -> u64 {
    CALLS_HERE.get()
}

/// Middleware for ureq that counts the calls of each thread. `/metrics` derives from it the share of calls that
/// blocked the reactor's own thread.
///
/// # Errors
///
/// Returns the error of the call.
pub fn count_call(
    request: Request<ureq::SendBody<'_>>,
    next: MiddlewareNext<'_>,
) -> Result<Response<ureq::Body>, ureq::Error> {
    CALLS_HERE.set(CALLS_HERE.get() + 1);
    next.handle(request)
}

/// Transfer time that the archive buffers: it answers that much before the bytes would have passed. Timers are exact
/// to a millisecond only, and a client that calls one after the other must not drain the buffer between two calls.
const BUFFERED: Duration = Duration::from_millis(4);

/// An HTTP server that keeps each body that is `PUT` until the first `GET` of its path, so that its memory stays
/// small. All clients share its bandwidth.
#[derive(Debug)]
pub(crate) struct Archive {
    /// Bandwidth of all clients together; `None` for as fast as the machine.
    bytes_per_second: Option<f64>,
    /// Status with which it answers every request, without keeping anything.
    status: Option<StatusCode>,
    kept: Mutex<HashMap<String, Bytes>>,
    /// Time at which the transfers so far will have passed at this bandwidth.
    free_at: Mutex<Instant>,
    counters: Arc<Counters>,
}

impl Archive {
    /// Starts one. Returns its URL, with a slash at the end.
    pub(crate) fn start(
        options: &ArchiveOptions,
        counters: &Arc<Counters>,
    ) -> std::io::Result<String> {
        let bytes_per_second = f64::from(options.archive_mib_per_second) * 1024.0 * 1024.0;
        let archive = Arc::new(Self {
            bytes_per_second: Some(bytes_per_second).filter(|speed| *speed > 0.0),
            status: options.archive_status,
            kept: Mutex::default(),
            free_at: Mutex::new(Instant::now()),
            counters: Arc::clone(counters),
        });
        let address = stand_in::start("archive", move |stream| Arc::clone(&archive).serve(stream))?;
        Ok(format!("http://{address}/"))
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let answer = service_fn(|request| self.answer(request));
        // A client that hangs up ends its connection and nothing else.
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), answer)
            .await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let sent = body.collect().await?.to_bytes();
        self.counters.archive_calls.fetch_add(1, Relaxed);
        if let Some(status) = self.status {
            return Ok(empty(status));
        }
        if head.method == Method::PUT {
            self.take_time_for(&sent).await;
            let bytes = sent.len() as u64;
            self.counters
                .archive_bytes_received
                .fetch_add(bytes, Relaxed);
            locked(&self.kept).insert(path.to_owned(), sent);
            return Ok(empty(StatusCode::CREATED));
        }
        let kept = locked(&self.kept).remove(path);
        let Some(kept) = kept else {
            return Ok(empty(StatusCode::NOT_FOUND));
        };
        self.take_time_for(&kept).await;
        let bytes = kept.len() as u64;
        self.counters.archive_bytes_sent.fetch_add(bytes, Relaxed);
        Ok(Response::new(kept.into()))
    }

    /// Waits until these bytes would have passed, less the time that is buffered.
    async fn take_time_for(&self, bytes: &Bytes) {
        let Some(speed) = self.bytes_per_second else {
            return;
        };
        let done_at = {
            let mut free_at = locked(&self.free_at);
            let time = Duration::from_secs_f64(bytes.len() as f64 / speed);
            *free_at = (*free_at).max(Instant::now()) + time;
            *free_at
        };
        sleep_until(done_at - BUFFERED).await;
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_fast_as_was_said_and_gives_back_what_it_was_sent_once() {
        let options = ArchiveOptions {
            archive_mib_per_second: 64,
            archive_status: None,
        };
        let url = Archive::start(&options, &Arc::default()).expect("it starts");
        let sent = vec![7; 1024 * 1024];
        let began = Instant::now();
        for number in 0..4 {
            let url = format!("{url}{number}");
            ureq::put(&url).send(&sent).expect("room");
            let mut response = ureq::get(&url).call().expect("what was sent");
            let given = response.body_mut().read_to_vec().expect("all of it");
            assert!(given == sent);
        }
        // 8 MiB at 64 MiB a second, but for what is buffered.
        assert!(began.elapsed() >= Duration::from_millis(120));
        let again = ureq::get(format!("{url}0")).call();
        assert!(matches!(again, Err(ureq::Error::StatusCode(404))));
    }
}
