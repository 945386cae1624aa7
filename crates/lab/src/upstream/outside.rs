//! An upstream that runs elsewhere and counts for itself, as nginx does at `/stub_status`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Counts;
use crate::error::Error;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A server on this machine, whose counts may have begun before this process.
#[derive(Debug)]
pub(crate) struct Outside {
    address: SocketAddr,
    before: Counts,
}

impl Outside {
    pub(crate) fn new(url: &str) -> Result<Self, Error> {
        let refused = |reason: String| Error::OutsideUpstream {
            url: url.to_owned(),
            reason,
        };
        let bare = url.strip_prefix("http://").unwrap_or(url);
        let address: SocketAddr = bare
            .trim_end_matches('/')
            .parse()
            .map_err(|_| refused("it is no address such as http://127.0.0.1:18081/".to_owned()))?;
        let before = counts(address).map_err(|error| refused(error.to_string()))?;
        Ok(Self { address, before })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn now(&self) -> Counts {
        let now = counts(self.address).unwrap_or(self.before);
        let before = self.before;
        Counts {
            // Each look at the counts is a connection and a request of its own; one was ours.
            connections: now.connections.saturating_sub(before.connections + 1),
            requests: now.requests.saturating_sub(before.requests + 1),
        }
    }
}

fn counts(address: SocketAddr) -> std::io::Result<Counts> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /stub_status HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| std::io::Error::other("it has no counts at /stub_status"))
}

/// nginx's `server accepts handled requests`, and the three numbers on the line below.
fn parse(text: &str) -> Option<Counts> {
    let (_, below) = text.split_once("server accepts handled requests")?;
    let mut numbers = below.split_whitespace().map(str::parse);
    Some(Counts {
        connections: numbers.next()?.ok()?,
        requests: numbers.nth(1)?.ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_is_understood() {
        let text = "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \n\
            server accepts handled requests\n 16 16 310 \nReading: 0 Writing: 1 Waiting: 0 \n";
        let counts = parse(text).expect("nginx's words");
        assert_eq!((counts.connections, counts.requests), (16, 310));
        assert_eq!(parse("HTTP/1.1 404 Not Found\r\n\r\n"), None);
    }
}
