//! Destination of a load: address, protocol and headers.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::AUTHORIZATION;

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
    /// Returns the scheme of the token that a login gave for it, such as `Bearer`.
    pub(crate) fn token_scheme(&self) -> Option<&str> {
        let (_, token) = self
            .headers
            .iter()
            .find(|(name, _)| **name == AUTHORIZATION)?;
        Some(token.split_once(' ')?.0)
    }

    /// Returns whether the server speaks TLS although plain HTTP is asked of it: it answers the broken beginning of a TLS
    /// handshake with a record of TLS, an alert as a rule (RFC 8446, 5.1).
    pub fn speaks_tls_unasked(&self) -> bool {
        const HELLO: [u8; 10] = [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0];
        const ALERT: u8 = 0x15;
        const WITHIN: Duration = Duration::from_secs(1);
        if self.protocol.tls.is_some() {
            return false;
        }
        let answer = || -> io::Result<u8> {
            let mut stream = TcpStream::connect_timeout(&self.address, WITHIN)?;
            stream.set_read_timeout(Some(WITHIN))?;
            stream.write_all(&HELLO)?;
            let mut first = [0];
            stream.read_exact(&mut first)?;
            Ok(first[0])
        };
        matches!(answer(), Ok(ALERT | 0x16))
    }

    /// Returns the end of a sentence about a request without an answer: what to do if the server speaks TLS, or nothing.
    pub(crate) fn advice(&self) -> &'static str {
        if self.speaks_tls_unasked() {
            "; HTTPS is spoken there: add --cacert FILE or --insecure, and write https:// in a URL"
        } else {
            ""
        }
    }

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
