//! The service that a service calls: embedded, or another one of the reader's.

mod bodies;
mod embedded;
mod outside;

pub use bodies::highest_at;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::counters::Counters;
use crate::error::Error;
use crate::metric::Metric;
use crate::options::Options;

/// The service that a chapter's service calls.
///
/// Without an option it is embedded, on a thread, a runtime and a port of its own. So it does not share the
/// service's reactor. Its port is a new one in each run, because connections of an earlier run may still occupy the old
/// one (`TIME_WAIT`). It answers every `GET` with `{"status": 200, "msg": "Good Luck!"}`, at once or after
/// `--upstream-latency-ms N`, as an upstream on a network would. It answers `GET /bodies/N` with a chunked
/// body of N bytes, one of which is higher than all others, and `GET /prices/N` with the price of product N,
/// `{"product": N, "cents": …}`. `--upstream-fault HOW` makes it fail. With `--upstream URL` it is another
/// server, which reports its counts at `/stub_status` as nginx does.
#[derive(Debug, Clone)]
pub struct Upstream {
    url: String,
    certificate: Option<&'static [u8]>,
}

impl Upstream {
    /// `latency` is the embedded one's unless the options have another.
    pub(crate) fn start(
        options: &Options,
        latency: Duration,
        counters: &Arc<Counters>,
    ) -> Result<(Self, Counted), Error> {
        if let Some(url) = &options.upstream.upstream {
            let counted = outside::Outside::new(url)?;
            let upstream = Self {
                url: url.clone(),
                certificate: None,
            };
            return Ok((upstream, Counted::Outside(counted)));
        }
        let started = embedded::start(options, latency, counters).map_err(Error::Upstream)?;
        let upstream = Self {
            // A certificate is made out to a name.
            url: if options.upstream_tls.tls {
                format!("https://localhost:{}/", started.address.port())
            } else {
                format!("http://{}/", started.address)
            },
            certificate: started.certificate,
        };
        let counted = Counted::Embedded {
            address: started.address,
            counters: Arc::clone(counters),
        };
        Ok((upstream, counted))
    }

    /// Returns the URL for requests, with a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The self-signed certificate of an embedded upstream that speaks TLS, in DER.
    pub fn certificate(&self) -> Option<&'static [u8]> {
        self.certificate
    }
}

/// Connections and requests that an upstream has counted since the server started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    connections: u64,
    requests: u64,
}

/// The source of the counts of an upstream's connections and requests.
#[derive(Debug)]
pub(crate) enum Counted {
    Embedded {
        address: SocketAddr,
        counters: Arc<Counters>,
    },
    Outside(outside::Outside),
}

impl Counted {
    fn now(&self) -> Counts {
        match self {
            Self::Embedded { counters, .. } => Counts {
                connections: counters.upstream_connections.load(Relaxed),
                requests: counters.upstream_requests.begun(),
            },
            Self::Outside(outside) => outside.now(),
        }
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let Counts {
            connections,
            requests,
        } = self.now();
        let mut metrics = vec![
            Metric::counter(
                "upstream_connections_total",
                "Connections that the upstream accepted",
                connections,
            ),
            Metric::counter(
                "upstream_requests_total",
                "Requests that the upstream received",
                requests,
            ),
            Metric::gauge(
                "upstream_connections_per_request",
                "Connections that the upstream accepted for each request",
                connections as f64 / requests.max(1) as f64,
            ),
            Metric::count(
                "upstream_ports_in_time_wait",
                "Local ports held by ended connections to the upstream",
                self.ports_in_time_wait(),
            ),
        ];
        if let Self::Embedded { counters, .. } = self {
            metrics.push(Metric::count(
                "upstream_requests_in_flight_peak",
                "Most requests that the upstream served at once",
                counters.upstream_requests.peak(),
            ));
        }
        metrics
    }

    /// Local ports that are held in `TIME_WAIT` by connections to the upstream; 0 where the system
    /// does not tell.
    fn ports_in_time_wait(&self) -> u64 {
        let port = match self {
            Self::Embedded { address, .. } => address.port(),
            Self::Outside(outside) => outside.port(),
        };
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        in_time_wait(&table, port)
    }
}

/// Lines of Linux's `/proc/net/tcp` whose state is `TIME_WAIT` (6) and whose other end is `port`.
fn in_time_wait(table: &str, port: u16) -> u64 {
    let other_end = format!(":{port:04X}");
    let is_meant = |line: &&str| {
        let mut fields = line.split_whitespace().skip(2);
        let remote = fields.next().unwrap_or_default();
        remote.ends_with(&other_end) && fields.next() == Some("06")
    };
    table.lines().filter(is_meant).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_wait_is_counted_by_the_other_ends_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
            1: 0100007F:9C40 0100007F:46A1 06 00000000:00000000\n\
            2: 0100007F:9C41 0100007F:46A1 01 00000000:00000000\n\
            3: 0100007F:9C42 0100007F:46A2 06 00000000:00000000\n";
        assert_eq!(in_time_wait(table, 0x46A1), 1);
        assert_eq!(in_time_wait(table, 80), 0);
    }
}
