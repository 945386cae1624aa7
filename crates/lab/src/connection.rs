//! One connection: accepted, then answered by the runtime that accepted it or by another thread.

use std::convert::Infallible;
use std::net;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use debug_endpoints::AwaitProfiler;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;

use crate::counters::Counters;
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
            answer(stream, service, self.counters).await;
        }
    }
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
    let _connection = counters.connections.begin();
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
            let _request = counters.requests.begin();
            let response = response.await?;
            // A client who hangs up first drops this future.
            if response.status().is_success() {
                counters.answers.fetch_add(1, Relaxed);
            }
            Ok::<_, Infallible>(response)
        }
    });
    // A client that hangs up ends its connection and nothing else.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), counted)
        .await;
}
