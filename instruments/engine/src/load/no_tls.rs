//! Replacement for `tls.rs` in a program that is built without it.

use tokio::net::TcpStream;

use super::failure::Failure;
use super::stream::Stream;

/// Configuration of a TLS client. The type has no values without the feature `tls`.
#[derive(Debug, Clone)]
pub enum Tls {}

/// HTTPS was asked of a program that has none.
#[derive(Debug, thiserror::Error)]
#[error("this program is built without HTTPS, its feature `tls`")]
pub struct TlsError;

impl Tls {
    /// Refuses, as the program has no TLS.
    ///
    /// # Errors
    ///
    /// Always returns an error.
    pub fn trusting(_: &[u8], _: &str) -> Result<Self, TlsError> {
        Err(TlsError)
    }

    /// Refuses, as the program has no TLS.
    ///
    /// # Errors
    ///
    /// Always returns an error.
    pub fn unchecked(_: &str) -> Result<Self, TlsError> {
        Err(TlsError)
    }

    pub(super) fn host(&self) -> String {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "its counterpart awaits a handshake")]
    pub(super) async fn over(&self, _: bool, _: TcpStream) -> Result<Box<dyn Stream>, Failure> {
        match *self {}
    }
}
