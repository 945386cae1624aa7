//! The URL of a service, with the address at which it listens.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use http::Uri;

/// Longest time that a service on this machine takes to accept a connection.
const TO_CONNECT: Duration = Duration::from_secs(1);

/// A URL such as `https://localhost:8443/health`, looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Address of the service: the first that accepts a connection, IPv4 before IPv6.
    pub address: SocketAddr,
    /// Host and port as they were written, for the `host` header.
    pub authority: String,
    /// Set if it begins with `https`.
    pub is_encrypted: bool,
    /// Path and query; `None` where there is none, or `/`.
    pub path: Option<String>,
}

/// Error for a text that is no URL of a service, or that names an unknown host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoUrl {
    /// No URL, or one whose host is unknown.
    #[error("that is no address; write it as http://127.0.0.1:8080/path")]
    Unknown,
    /// The path of a Unix socket.
    #[error(
        "Unix sockets are not supported; let the service listen on a TCP port, such as 127.0.0.1:8080"
    )]
    UnixSocket,
}

impl Url {
    /// Reads `HOST:PORT`, `http://…` or `https://…`, and looks the host up.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no such URL, or its host has no address.
    pub fn find(text: &str) -> Result<Self, NoUrl> {
        let ending = std::path::Path::new(text).extension();
        let is_socket = ending.is_some_and(|ending| ending.eq_ignore_ascii_case("sock"));
        if is_socket
            || is_unix_socket(text)
            || text.starts_with("unix:")
            || text.contains("unix://")
        {
            return Err(NoUrl::UnixSocket);
        }
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = with_scheme.parse().map_err(|_| NoUrl::Unknown)?;
        let (Some(authority), Some(scheme)) = (uri.authority(), uri.scheme_str()) else {
            return Err(NoUrl::Unknown);
        };
        let (is_encrypted, usual_port) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return Err(NoUrl::Unknown),
        };
        let name = authority.host().trim_matches(['[', ']']);
        let port = authority.port_u16().unwrap_or(usual_port);
        let found: Vec<SocketAddr> = if name.eq_ignore_ascii_case("localhost") {
            // The system's list of hosts may have only one of them.
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            loopback
                .map(|address| SocketAddr::new(address, port))
                .into()
        } else {
            let found = (name, port).to_socket_addrs();
            found.map_err(|_| NoUrl::Unknown)?.collect()
        };
        let address = first_that_listens(found).ok_or(NoUrl::Unknown)?;
        let path = uri.path_and_query().map(|path| path.as_str().to_owned());
        Ok(Self {
            address,
            authority: authority.to_string(),
            is_encrypted,
            path: path.filter(|path| path != "/"),
        })
    }

    /// Returns `https://HOST[:PORT]`, or the same with `http`.
    pub fn origin(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }
}

/// Returns whether there is a Unix socket at this path.
#[cfg(unix)]
fn is_unix_socket(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(not(unix))]
fn is_unix_socket(_: &str) -> bool {
    false
}

/// Returns the first address that accepts a connection, or else the first one. IPv4 comes first, because services on
/// this machine mostly listen on the IPv4 loopback.
fn first_that_listens(mut addresses: Vec<SocketAddr>) -> Option<SocketAddr> {
    addresses.sort_by_key(SocketAddr::is_ipv6);
    if addresses.len() > 1 {
        for address in &addresses {
            if TcpStream::connect_timeout(address, TO_CONNECT).is_ok() {
                return Some(*address);
            }
        }
    }
    addresses.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_path_of_a_unix_socket_is_told_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(Url::find(path.to_str().unwrap()), Err(NoUrl::UnixSocket));
        let other = folder.path().join("none");
        assert_eq!(Url::find(other.to_str().unwrap()), Err(NoUrl::Unknown));
    }

    #[test]
    fn a_url_yields_address_authority_and_path() {
        let url = Url::find("http://127.0.0.1:8080/health?full").unwrap();
        assert_eq!(url.address, SocketAddr::from(([127, 0, 0, 1], 8080)));
        assert_eq!(url.path.as_deref(), Some("/health?full"));
        assert_eq!(url.origin(), "http://127.0.0.1:8080");
        assert!(Url::find("127.0.0.1:80/").unwrap().path.is_none());
        assert_eq!(Url::find("https://127.0.0.1").unwrap().address.port(), 443);
        for wrong in ["ftp://127.0.0.1", "", "http://"] {
            assert_eq!(Url::find(wrong), Err(NoUrl::Unknown), "{wrong}");
        }
        for socket in ["unix:/run/shop.sock", "unix:///run/shop", "/run/shop.sock"] {
            assert_eq!(Url::find(socket), Err(NoUrl::UnixSocket), "{socket}");
        }
    }
}
