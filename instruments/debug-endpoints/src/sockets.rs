//! TCP connections that this process has and opens, and data that waits in them, without a change of the service's
//! code.
//!
//! The process's own descriptors are examined many times. A connection that begins and ends between two looks is not
//! seen, so the counts are lower limits. The kernel's own counts, of the whole network namespace, are reported beside
//! them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use diagnosis::Report;
use diagnosis::evidence::{Connections, Part, Peers};
use serde::Serialize;

use crate::error::EndpointError;
use crate::own_thread::{self, Until};
use crate::tcp_socket::TcpSocket;

/// Shortest pause between two looks, and its shortest length as a multiple of a look's own time.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_OF_LOOKS: u32 = 20;

/// Shortest pause between two looks at the whole namespace, and its shortest length as a multiple of a look's own time.
/// Ended connections stay listed for a minute.
const PAUSE_OF_TABLES: Duration = Duration::from_secs(1);
const PAUSE_OF_TABLE: u32 = 50;

/// Most connections that are told apart.
const MOST_CONNECTIONS: usize = 200_000;

/// The state of ended connections in the system's tables.
const TIME_WAIT: u8 = 6;

/// The connections of this process during some time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sockets {
    seconds: f64,
    /// Number of looks at the descriptors.
    looks: u32,
    /// Connections that the whole network namespace opened and accepted in this time, by the kernel's count.
    namespace_opened: Option<u64>,
    namespace_accepted: Option<u64>,
    /// Addresses to which this process connects.
    upstreams: Vec<Peers>,
    /// Ports on which this process accepts connections.
    listeners: Vec<Peers>,
    /// Findings, each in lines.
    says: Vec<String>,
}

/// Side of a connection that this process is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Connects(SocketAddr),
    Accepts(u16),
}

/// Both ends of a connection, this process's first.
type Ends = (SocketAddr, SocketAddr);

/// Returns the ends in a line of the system's tables, and the state.
fn row(line: &str) -> Option<(Ends, u8)> {
    let mut words = line.split_whitespace().skip(1);
    let ends = (address(words.next()?)?, address(words.next()?)?);
    Some((ends, u8::from_str_radix(words.next()?, 16).ok()?))
}

/// Reads an address such as `0100007F:1F90`, which is 127.0.0.1:8080: 32-bit words in memory order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok();
    let ip = if ip.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes()))
    } else {
        let mut bytes = [0; 16];
        for (index, four) in bytes.chunks_exact_mut(4).enumerate() {
            four.copy_from_slice(&word(index * 8)?.to_ne_bytes());
        }
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Returns recently ended connections of the network namespace, of any process.
fn ended() -> Vec<Ends> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let texts = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let rows = texts.iter().flat_map(|text| text.lines()).filter_map(row);
    let ended = rows.filter(|(_, state)| *state == TIME_WAIT);
    ended.map(|(ends, _)| ends).collect()
}

/// Returns this process's TCP sockets.
fn own_sockets() -> Option<Vec<TcpSocket>> {
    let open = fs::read_dir("/proc/self/fd").ok()?.flatten();
    let descriptors = open.filter_map(|one| one.file_name().to_str()?.parse().ok());
    Some(descriptors.filter_map(TcpSocket::of).collect())
}

/// Returns the numbers of connections that the namespace opened and accepted since it began.
fn namespace_counts() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/self/net/snmp").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
    let counts: HashMap<_, _> = names.zip(values).collect();
    let count = |name| counts.get(name)?.parse().ok();
    Some((count("ActiveOpens")?, count("PassiveOpens")?))
}

/// Observations so far.
#[derive(Default)]
struct Seen {
    looks: u32,
    sides: BTreeMap<Side, Peers>,
    connections: HashSet<Ends>,
    round_trips: BTreeMap<Side, (f64, u32)>,
    /// Numbers of open connections to each address that this process connects to, look by look.
    open: BTreeMap<SocketAddr, Vec<i64>>,
}

impl Seen {
    /// Returns whether a connection is seen for the first time, and remembers it.
    fn is_new(&mut self, ends: Ends) -> bool {
        self.connections.len() < MOST_CONNECTIONS && self.connections.insert(ends)
    }

    fn side(&self, (local, remote): Ends) -> Side {
        let accepts = Side::Accepts(local.port());
        if self.sides.contains_key(&accepts) {
            accepts
        } else {
            Side::Connects(remote)
        }
    }

    /// Looks once more, if the descriptors can be read.
    fn look(&mut self) -> Option<()> {
        let own = own_sockets()?;
        let is_first = self.looks == 0;
        self.looks += 1;
        for listener in own.iter().filter(|socket| socket.listens()) {
            let accepts = Side::Accepts(listener.local.port());
            let peers = self.sides.entry(accepts).or_default();
            peers.unaccepted_looks += u32::from(listener.unaccepted() > 0);
            peers.most_unaccepted = peers.most_unaccepted.max(listener.unaccepted());
        }
        for peers in self.sides.values_mut() {
            peers.open = 0;
        }
        let (mut looked_at, mut without_nodelay) = (HashSet::new(), BTreeMap::new());
        for socket in own.iter().filter(|socket| socket.is_open()) {
            let Some(ends) = socket.remote.map(|remote| (socket.local, remote)) else {
                continue;
            };
            // Two descriptors may stand for one socket.
            if !looked_at.insert(ends) {
                continue;
            }
            let (is_new, side) = (self.is_new(ends), self.side(ends));
            let peers = self.sides.entry(side).or_default();
            peers.open += 1;
            peers.opened += usize::from(is_new && !is_first);
            let without: &mut usize = without_nodelay.entry(side).or_default();
            *without += usize::from(!socket.is_nodelay);
            peers.without_nodelay = peers.without_nodelay.max(*without);
            peers.queued_looks += u32::from(socket.is_queued());
            peers.held_looks += u32::from(socket.is_held_by_nagle());
            let (sum, count) = self.round_trips.entry(side).or_default();
            *sum += f64::from(socket.round_trip_us) / 1e3;
            *count += 1;
        }
        for (side, peers) in &mut self.sides {
            peers.most_open = peers.most_open.max(peers.open);
            if let Side::Connects(to) = side {
                let open = self.open.entry(*to).or_default();
                open.push(i64::try_from(peers.open).unwrap_or(i64::MAX));
            }
        }
        Some(())
    }

    /// Looks for connections that have begun and ended since the last time.
    fn look_for_ended(&mut self, is_first: bool) {
        for ends in ended() {
            let (is_new, side) = (self.is_new(ends), self.side(ends));
            // Count only addresses that this process deals with; others are another process's.
            if let Some(peers) = self.sides.get_mut(&side).filter(|_| is_new && !is_first) {
                peers.ended += 1;
            }
        }
    }

    fn told(self, began: Instant, before: Option<(u64, u64)>) -> Sockets {
        let seconds = began.elapsed().as_secs_f64();
        let counts = before.zip(namespace_counts());
        let mut sockets = Sockets {
            seconds,
            looks: self.looks,
            namespace_opened: counts.map(|(before, now)| now.0.saturating_sub(before.0)),
            namespace_accepted: counts.map(|(before, now)| now.1.saturating_sub(before.1)),
            upstreams: Vec::new(),
            listeners: Vec::new(),
            says: Vec::new(),
        };
        for (side, mut peers) in self.sides {
            peers.opened_per_second = peers.opened as f64 / seconds;
            let round_trips = self.round_trips.get(&side);
            peers.round_trip_ms = round_trips.map(|(sum, count)| sum / f64::from(*count));
            let of_side = match side {
                Side::Connects(to) => {
                    peers.address = to.to_string();
                    let open = self.open.get(&to).into_iter().flatten();
                    peers.growth = Some(Part::of(open.copied()));
                    &mut sockets.upstreams
                }
                Side::Accepts(port) => {
                    peers.address = format!("port {port}");
                    &mut sockets.listeners
                }
            };
            of_side.push(peers);
        }
        for of_side in [&mut sockets.upstreams, &mut sockets.listeners] {
            of_side.sort_by_key(|peers| std::cmp::Reverse((peers.opened, peers.most_open)));
        }
        sockets.says = Report::of_connections(sockets.clone().evidence());
        sockets
    }
}

impl Sockets {
    /// Returns the figures that the rules judge.
    pub(crate) fn evidence(self) -> Connections {
        Connections {
            seconds: self.seconds,
            looks: self.looks,
            namespace_opened: self.namespace_opened,
            namespace_accepted: self.namespace_accepted,
            upstreams: self.upstreams,
            listeners: self.listeners,
        }
    }
}

impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.says {
            writeln!(f, "{finding}\n")?;
        }
        for (title, of_side) in [
            ("connects to", &self.upstreams),
            ("accepts on", &self.listeners),
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
        writeln!(
            f,
            "{} looks in {:.1} s. Opened: at least. Held back: of the looks at which a connection had something queued.",
            self.looks, self.seconds
        )?;
        if let Some((opened, accepted)) = self.namespace_opened.zip(self.namespace_accepted) {
            writeln!(
                f,
                "All processes of this network namespace together opened {opened} connections and accepted {accepted}."
            )?;
        }
        Ok(())
    }
}

/// Looks at the sockets for `duration`.
pub(crate) async fn watch(duration: Duration) -> Result<Sockets, EndpointError> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let sockets = own_thread::look("sockets", &ONE, duration, take);
    let unavailable =
        "the system's tables of sockets cannot be read: no /proc, or no file descriptor is left";
    let unavailable = EndpointError::Unavailable(unavailable.to_owned());
    sockets.await?.ok_or(unavailable)
}

fn take(until: &Until<'_>) -> Option<Sockets> {
    let (began, before) = (Instant::now(), namespace_counts());
    let mut seen = Seen::default();
    seen.look()?;
    let mut tables_due = began;
    loop {
        let looked = Instant::now();
        // Look at the tables once more at the end.
        if tables_due <= looked || until.is_over() {
            seen.look_for_ended(tables_due == began);
            tables_due = looked + PAUSE_OF_TABLES.max(looked.elapsed() * PAUSE_OF_TABLE);
        }
        if until.is_over() {
            return Some(seen.told(began, before));
        }
        let looked = Instant::now();
        // If no descriptor is left for a moment, the other looks count.
        let _ = seen.look();
        until.sleep(PAUSE.max(looked.elapsed() * PAUSE_OF_LOOKS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_systems_table_is_read_and_a_damaged_one_is_not() {
        let line =
            "   1: 0100007F:1F90 0200007F:D431 06 00000000:00000000 00:00000000 00000000  1000";
        let ends = ([127, 0, 0, 1], 8080).into();
        let ends = (ends, ([127, 0, 0, 2], 54321).into());
        assert_eq!(row(line), Some((ends, TIME_WAIT)));
        let mapped = address("0000000000000000FFFF00000100007F:0050");
        assert_eq!(mapped, Some(SocketAddr::from(([127, 0, 0, 1], 80))));
        let six = address("00000000000000000000000001000000:0050");
        assert_eq!(six, Some(SocketAddr::from((Ipv6Addr::LOCALHOST, 80))));
        for damaged in [
            &line[..34],
            &line[..20],
            "",
            "  sl  local_address rem_address st",
            "1: é:1 2:2 01",
        ] {
            assert_eq!(row(damaged), None);
        }
    }
}
