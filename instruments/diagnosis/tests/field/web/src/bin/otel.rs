//! The simple span processor exports each span while the request waits for it, on its worker.
//!
//! Reports: open-telemetry/opentelemetry-rust#498, #2715.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use field::Arguments;
use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter};

/// A collector over HTTP, as exporters with a blocking client have it.
#[derive(Debug)]
struct Collector(SocketAddr);

impl Collector {
    fn post(&self, spans: usize) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(self.0)?;
        let head = "POST / HTTP/1.1\r\nhost: c\r\nconnection: close\r\ncontent-length: 2\r\n\r\n";
        write!(stream, "{head}{:02}", spans % 100)?;
        stream.read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

impl SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let posted = self.post(batch.len());
        posted.map_err(|error| OTelSdkError::InternalFailure(error.to_string()))
    }
}

async fn quote(State(tracer): State<SdkTracer>, Path(id): Path<u64>) -> String {
    let mut span = tracer.start("quote");
    tokio::time::sleep(Duration::from_millis(2)).await;
    span.end();
    (id * 3).to_string()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let collector = Collector(field::answering_after(Duration::from_millis(8)));
    let provider = SdkTracerProvider::builder();
    // The fault: one export for each span.
    let provider = if arguments.fixed {
        provider.with_batch_exporter(collector).build()
    } else {
        provider.with_simple_exporter(collector).build()
    };
    let routes = Router::new()
        .route("/quote/{id}", get(quote))
        .with_state(provider.tracer("shop"));
    field::serve(&arguments, routes).await
}
