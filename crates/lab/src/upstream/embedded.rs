//! The embedded upstream: a hyper server on a thread of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::bodies::{Chunks, Fault, Maker};
use crate::counters::Counters;
use crate::options::{Options, UpstreamFault};
use crate::stand_in;

/// A running upstream.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) address: SocketAddr,
    /// In DER, where it speaks TLS.
    pub(super) certificate: Option<&'static [u8]>,
}

pub(super) fn start(
    options: &Options,
    latency: Duration,
    counters: &Arc<Counters>,
) -> io::Result<Started> {
    let asked = options
        .upstream
        .upstream_latency_ms
        .map(Duration::from_millis);
    let answers = Answers {
        message: message(options.data_seed()),
        bodies: Maker::new(options.data_seed()),
        seed: options.data_seed(),
        latency: asked.unwrap_or(latency),
        fault: options.upstream.upstream_fault,
        fault_after: options.upstream.upstream_fault_after,
        faults: options.upstream.upstream_faults,
        counters: Arc::clone(counters),
        #[cfg(feature = "tls")]
        tls: options.upstream_tls.tls.then(tls::acceptor).transpose()?,
    };
    let address = stand_in::start("upstream", move |stream| answers.clone().accept(stream))?;
    Ok(Started {
        address,
        #[cfg(feature = "tls")]
        certificate: options.upstream_tls.tls.then_some(tls::CERTIFICATE),
        #[cfg(not(feature = "tls"))]
        certificate: None,
    })
}

/// The answers of every connection.
#[derive(Clone)]
struct Answers {
    /// For all other requests.
    message: Bytes,
    /// For requests that name the length of a body.
    bodies: Maker,
    /// For requests that ask for a price.
    seed: u64,
    /// Waited for before each answer, as if the upstream were on a network.
    latency: Duration,
    /// Fault of the requests that fail, if any fail.
    fault: Option<UpstreamFault>,
    /// Number of requests that it answers before the first fault.
    fault_after: u64,
    /// Number of requests that fail before it answers again; `None` if it never does.
    faults: Option<u64>,
    counters: Arc<Counters>,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

type Answer = Response<Either<Full<Bytes>, Chunks>>;

impl Answers {
    /// Counts a request for `path`, and answers it in time.
    async fn to(&self, path: &str) -> io::Result<Answer> {
        let _request = self.counters.upstream_requests.begin();
        let number = self.counters.upstream_requests.begun();
        let mut answer = self.at_once(path, number);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let fault = number.saturating_sub(self.fault_after);
        let fails = fault > 0 && self.faults.is_none_or(|faults| fault <= faults);
        match self.fault.filter(|_| fails) {
            None => {}
            Some(UpstreamFault::Status) => *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE,
            Some(UpstreamFault::Garbage) => {
                *answer.body_mut() = Either::Left(Full::from("Good Luck?"));
            }
            Some(UpstreamFault::HangUp) => return Err(io::ErrorKind::ConnectionReset.into()),
            Some(UpstreamFault::Silence) => std::future::pending().await,
            Some(UpstreamFault::Stall) => *answer.body_mut() = self.failing(Fault::Stalls),
            Some(UpstreamFault::BreakOff) => *answer.body_mut() = self.failing(Fault::BreaksOff),
        }
        if let Some(pool) = self.counters.pool.get() {
            pool.note_answer();
        }
        Ok(answer)
    }

    async fn accept(self, stream: TcpStream) {
        self.counters.upstream_connections.fetch_add(1, Relaxed);
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls.clone() {
            // If the handshake fails, the caller sees the error and reports it.
            if let Ok(stream) = tls.accept(stream).await {
                serve(stream, self).await;
            }
            return;
        }
        serve(stream, self).await;
    }

    fn failing(&self, fault: Fault) -> Either<Full<Bytes>, Chunks> {
        Either::Right(self.bodies.fail(fault))
    }

    fn at_once(&self, path: &str, number: u64) -> Answer {
        let length = path.strip_prefix("/bodies/").map(str::parse);
        if let Some(Ok(length)) = length {
            let body = self.bodies.make(number, length);
            self.counters
                .upstream_body_bytes
                .fetch_add(body.length(), Relaxed);
            return Response::new(Either::Right(body));
        }
        let product = path.strip_prefix("/prices/").map(str::parse);
        let body = match product {
            Some(Ok(product)) => price(product, self.seed),
            _ => self.message.clone(),
        };
        let mut response = Response::new(Either::Left(Full::new(body)));
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// The message of every answer; with a data seed it is another one.
fn message(seed: u64) -> Bytes {
    let message = match seed {
        0 => "Good Luck!".to_owned(),
        seed => format!("Good Luck, {seed}!"),
    };
    format!("{{\"status\": 200, \"msg\": \"{message}\"}}").into()
}

/// Returns the price of a product, as JSON. It depends on the data seed.
fn price(product: u64, seed: u64) -> Bytes {
    let cents = 100 + product.wrapping_mul(997).wrapping_add(seed) % 9_900;
    format!("{{\"product\": {product}, \"cents\": {cents}}}").into()
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, answers: Answers) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let answers = answers.clone();
        async move { answers.to(request.uri().path()).await }
    });
    // A client that hangs up ends its connection and nothing else.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

#[cfg(feature = "tls")]
mod tls {
    use std::io;
    use std::sync::Arc;

    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

    /// For `localhost`, from 1975 to 4096, by `rcgen::generate_simple_self_signed`. No program trusts it but
    /// the chapter that asks this upstream, so its key may be known to everybody.
    pub(super) const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
    const KEY: &[u8] = include_bytes!("tls/key.der");

    /// TLS with [`CERTIFICATE`].
    pub(super) fn acceptor() -> io::Result<TlsAcceptor> {
        let key = PrivateKeyDer::try_from(KEY).map_err(io::Error::other)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
            .map_err(io::Error::other)?;
        Ok(Arc::new(config).into())
    }
}
