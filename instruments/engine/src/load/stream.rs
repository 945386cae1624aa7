//! Byte streams below HTTP.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Byte stream of a connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// Returns the TCP connection below.
    fn tcp(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}
