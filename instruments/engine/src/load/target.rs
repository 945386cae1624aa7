//! Where a load goes, and whether it is encrypted on the way.

use std::net::SocketAddr;
use std::sync::Arc;

use super::tls::Tls;

/// A server, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it speaks.
    pub protocol: Protocol,
    /// What every request to it carries beside its own headers: who has logged in there.
    pub headers: Arc<[(String, String)]>,
}

/// What a server speaks; HTTP/1.1 in plain unless told otherwise.
#[derive(Debug, Clone, Default)]
pub struct Protocol {
    /// Whom to trust, for HTTPS.
    pub tls: Option<Tls>,
    /// HTTP/2 and nothing else: chosen by ALPN in HTTPS, known beforehand in plain HTTP.
    pub http2: bool,
}

impl Target {
    /// What URLs of it begin with: `https://localhost:8443`.
    pub fn origin(&self) -> String {
        match &self.protocol.tls {
            None => format!("http://{}", self.address),
            Some(tls) => format!("https://{}:{}", tls.host(), self.address.port()),
        }
    }
}

impl From<SocketAddr> for Target {
    /// Over HTTP/1.1.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            protocol: Protocol::default(),
            headers: Arc::default(),
        }
    }
}
