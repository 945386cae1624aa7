//! TCP connections that this process has and opens, its UDP sockets, and data that waits in them, without a change of the
//! service's code.
//!
//! The process's own descriptors are examined many times. A connection that begins and ends between two looks is not
//! seen, so the counts are lower limits. The kernel's own counts, of the whole network namespace, are reported beside
//! them.

mod tcp_socket;
mod udp_socket;

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use diagnosis::datagrams::{DatagramSocket, WatchedDatagrams};
use diagnosis::evidence::{Connections, Datagrams};
use diagnosis::sockets::{Socket, Watched, namespace_counts};
use diagnosis::{Process, Report};
use serde::Serialize;

use self::tcp_socket::TcpSocket;
use crate::error::EndpointError;
use crate::own_thread::{self, Until};

/// Shortest pause between two looks, and its shortest length as a multiple of a look's own time.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_OF_LOOKS: u32 = 20;

/// The connections of this process during some time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sockets {
    #[serde(flatten)]
    pub(crate) seen: Connections,
    /// Findings, each in lines.
    says: Vec<String>,
}

/// Returns this process's TCP sockets, and its UDP sockets.
fn own_sockets() -> Option<(Vec<Socket>, Vec<DatagramSocket>)> {
    let (mut sockets, mut datagrams) = (Vec::new(), Vec::new());
    for open in fs::read_dir("/proc/self/fd").ok()?.flatten() {
        let Some(descriptor) = open.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match TcpSocket::of(descriptor) {
            Some(socket) => sockets.push(socket.socket()),
            None => datagrams.extend(udp_socket::of(descriptor)),
        }
    }
    Some((sockets, datagrams))
}

impl Sockets {
    fn of(seen: Connections) -> Self {
        let says = Report::of_connections(seen.clone());
        Self { seen, says }
    }
}

impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.says {
            writeln!(f, "{finding}\n")?;
        }
        for (title, of_side) in [
            ("connects to", &self.seen.upstreams),
            ("accepts on", &self.seen.listeners),
        ] {
            let heads = "open   most  opened  a second  Nagle on  held back  round trip";
            writeln!(f, "{title:<30}{heads}")?;
            for peers in of_side.iter().take(50) {
                let held = format!("{}/{}", peers.held_looks, peers.queued_looks);
                let round_trip = peers.round_trip_ms.unwrap_or_default();
                writeln!(
                    f,
                    "{:<29}{:>5}{:>7}{:>8}{:>10.1}{:>10}{held:>11}{round_trip:>9.3} ms",
                    peers.address,
                    peers.open,
                    peers.most_open,
                    peers.opened + peers.ended,
                    peers.opened_per_second,
                    peers.without_nodelay,
                )?;
            }
        }
        for datagrams in self.seen.datagrams.iter().take(50) {
            writeln!(f, "{}", line_of(datagrams))?;
        }
        writeln!(
            f,
            "{} looks in {:.1} s. Opened: at least. Held back: of the looks that found something queued.",
            self.seen.looks, self.seen.seconds
        )?;
        let counts = (
            self.seen.namespace_opened,
            self.seen.namespace_failed,
            self.seen.namespace_accepted,
        );
        if let (Some(opened), Some(failed), Some(accepted)) = counts {
            writeln!(
                f,
                "All processes of this network namespace together opened {opened} connections, of which {failed} failed, and \
                 accepted {accepted}."
            )?;
        }
        Ok(())
    }
}

/// Returns the figures of UDP sockets as a line.
fn line_of(datagrams: &Datagrams) -> String {
    let side = if datagrams.is_connected {
        "connected to"
    } else {
        "receives on"
    };
    format!(
        "UDP {side} {}: {} datagrams dropped, and some waited at {:.0} % of the looks, {} bytes at most",
        datagrams.address,
        datagrams.dropped,
        datagrams.unread_share * 100.0,
        datagrams.most_unread
    )
}

/// Looks at the sockets for `duration`.
pub(crate) async fn watch(duration: Duration) -> Result<Sockets, EndpointError> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let Some(sockets) = own_thread::look("sockets", &ONE, duration, take).await? else {
        let reason = "the system's tables of sockets cannot be read: no /proc, or no file descriptor is left";
        return Err(EndpointError::Unavailable(reason.to_owned()));
    };
    Ok(sockets)
}

fn take(until: &Until<'_>) -> Option<Sockets> {
    let process = Process::this();
    let (began, before) = (Instant::now(), namespace_counts(process));
    let (mut seen, mut datagrams) = (Watched::default(), WatchedDatagrams::default());
    let (own, own_datagrams) = own_sockets()?;
    seen.look(&own);
    datagrams.look(&own_datagrams);
    loop {
        let is_over = until.is_over();
        seen.look_for_ended(process, is_over);
        if is_over {
            let seconds = began.elapsed().as_secs_f64();
            let mut seen = seen.finish(seconds, before, namespace_counts(process));
            seen.datagrams = datagrams.finish();
            return Some(Sockets::of(seen));
        }
        let looked = Instant::now();
        // If no descriptor is left for a moment, the other looks count.
        if let Some((own, own_datagrams)) = own_sockets() {
            seen.look(&own);
            datagrams.look(&own_datagrams);
        }
        until.sleep(PAUSE.max(looked.elapsed() * PAUSE_OF_LOOKS));
    }
}
