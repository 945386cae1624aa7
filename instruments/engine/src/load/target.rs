//! Destination of a load: address, protocol and headers.

use std::net::SocketAddr;
use std::sync::Arc;

use super::tls::Tls;

/// A server to send requests to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Address at which it listens.
    pub address: SocketAddr,
    /// Protocol that it speaks.
    pub protocol: Protocol,
    /// Headers that every request to it carries beside its own, such as those of a login.
    pub headers: Arc<[(String, String)]>,
}

/// Protocol of a server; plain HTTP/1.1 unless told otherwise.
#[derive(Debug, Clone, Default)]
pub struct Protocol {
    /// Configuration of TLS, for HTTPS.
    pub tls: Option<Tls>,
    /// Set for HTTP/2 and nothing else: chosen by ALPN in HTTPS, known beforehand in plain HTTP.
    pub http2: bool,
}

impl Target {
    /// Returns the beginning of its URLs, such as `https://localhost:8443`.
    pub fn origin(&self) -> String {
        match &self.protocol.tls {
            None => format!("http://{}", self.address),
            Some(tls) => format!("https://{}:{}", tls.host(), self.address.port()),
        }
    }
}

impl From<SocketAddr> for Target {
    /// Returns the server at `address`, with plain HTTP/1.1.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            protocol: Protocol::default(),
            headers: Arc::default(),
        }
    }
}
