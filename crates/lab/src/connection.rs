//! One connection: accepted, then answered by the runtime that accepted it or by another thread.

use std::future::poll_fn;
use std::net;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use debug_endpoints::AwaitProfiler;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;

use crate::counters::Counters;
use crate::database;
use crate::turns::Turns;
use crate::web_service::WebService;

/// A connection that was accepted and is not answered yet. It belongs to no runtime, so that it can
/// be sent to another thread.
#[derive(Debug)]
pub struct Connection {
    stream: net::TcpStream,
    profiler: AwaitProfiler,
    counters: Arc<Counters>,
}

impl Connection {
    /// Takes the stream out of the runtime that accepted it.
    pub(crate) fn detached(
        stream: TcpStream,
        profiler: AwaitProfiler,
        counters: &Arc<Counters>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            stream: stream.into_std()?,
            profiler,
            counters: Arc::clone(counters),
        })
    }

    /// Answers its requests with `service` until the client hangs up. Call it within the tokio
    /// runtime that is to read and write the connection.
    pub async fn answer<S: WebService>(self, service: S) {
        // Fails when this runtime is out of file descriptors: the client sees a closed connection.
        if let Ok(stream) = TcpStream::from_std(self.stream) {
            let service = self.profiler.layer().layer(service);
            let counters = Arc::clone(&self.counters);
            let answered = pin!(answer(stream, service, self.counters));
            noting_moves(answered, || {
                counters.connections_moved.inc();
            })
            .await;
        }
    }
}

/// Calls `moved` each time that `task` goes on in another thread.
async fn noting_moves(mut task: Pin<&mut impl Future<Output = ()>>, moved: impl Fn()) {
    let mut before = None;
    poll_fn(|context| {
        let here = thread::current().id();
        if before.replace(here).is_some_and(|before| before != here) {
            moved();
        }
        task.as_mut().poll(context)
    })
    .await;
}

/// The listener's next connection.
pub(crate) async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Out of file descriptors, most likely: let some connections end first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers the requests of a connection that this runtime has accepted.
pub(crate) async fn answer<S: WebService>(stream: TcpStream, service: S, counters: Arc<Counters>) {
    let _connection = counters.enter_connection();
    // Small answers must not wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(service);
    let of_connection = Arc::clone(&counters);
    let counted = hyper::service::service_fn(move |request| {
        let counters = Arc::clone(&of_connection);
        let response = hyper::service::Service::call(&service, request);
        #[cfg(feature = "allocations")]
        let response = crate::allocations::counted(response);
        async move {
            let _request = counters.enter_request();
            let turn = counters.turns.get().map(Turns::take);
            let response = database::of_request(response).await;
            if let Some(turn) = turn {
                turn.answered();
            }
            response
        }
    });
    // A client that hangs up ends its connection and nothing else.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), counted)
        .await;
    counters.connections_finished.inc();
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_task_has_moved_when_another_thread_polls_it() {
        let moved = AtomicU32::new(0);
        let never = pin!(pending());
        let mut task = pin!(noting_moves(never, || {
            moved.fetch_add(1, Relaxed);
        }));
        let mut poll = || task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending() && poll().is_pending());
        assert_eq!(moved.load(Relaxed), 0);
        thread::scope(|scope| {
            scope
                .spawn(|| poll().is_pending())
                .join()
                .expect("no panic")
        });
        assert_eq!(moved.load(Relaxed), 1);
    }
}
