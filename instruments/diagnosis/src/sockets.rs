//! TCP connections of a process, added up look by look, and the system's tables of sockets.
//!
//! The process is looked at many times. A connection that begins and ends between two looks is not seen, so the counts
//! are lower limits. The kernel's own counts, of the whole network namespace, are reported beside them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Process;
use crate::evidence::{Connections, Part, Peers};
use crate::thresholds::{SLOW_CLIENT_BYTES, UNREAD_LOOKS, UNREAD_SHARE};

/// Most connections that are told apart.
const MOST_CONNECTIONS: usize = 200_000;

/// Shortest pause between two looks at the whole table, and its shortest length as a multiple of a look's own time. Ended
/// connections stay listed for a minute, and there may be a hundred thousand of them.
const PAUSE_OF_TABLES: Duration = Duration::from_secs(1);
const PAUSE_OF_TABLE: u32 = 50;

/// The kernel's number of the state in which the other end sends no more (`TCP_CLOSE_WAIT`).
const CLOSED_BY_OTHER: u8 = 8;

/// State of a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// It is connected, and this end may still send.
    Open,
    /// It accepts connections.
    Listens,
    /// It has ended, and the system keeps it for a minute.
    Ended,
    /// Any other state.
    Other,
}

impl SocketState {
    /// Returns the state with the kernel's number.
    pub fn of(number: u8) -> Self {
        match number {
            1 | CLOSED_BY_OTHER => Self::Open,
            6 => Self::Ended,
            10 => Self::Listens,
            _ => Self::Other,
        }
    }
}

/// A TCP socket of the process at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// Its own address.
    pub local: SocketAddr,
    /// Address of the other end; `None` if the socket is not connected.
    pub remote: Option<SocketAddr>,
    /// Its state.
    pub state: SocketState,
    /// Number of a listener's connections that were not accepted yet.
    pub unaccepted: u32,
    /// True if Nagle's algorithm is known to be on.
    pub is_without_nodelay: bool,
    /// True if written data has not been acknowledged.
    pub is_queued: bool,
    /// True if Nagle's algorithm alone is known to hold a small piece back for long.
    pub is_held_by_nagle: bool,
    /// The kernel's estimate of the round-trip time, in microseconds, if it is known.
    pub round_trip_us: Option<u32>,
    /// Bytes of a connection that were received and not read, if they are known.
    pub unread: Option<u32>,
    /// Bytes that were written and not acknowledged, if they are known.
    pub unsent: Option<u32>,
}

/// Side of a connection that this process is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Connects(SocketAddr),
    Accepts(u16),
}

/// Both ends of a connection, this process's first.
type Ends = (SocketAddr, SocketAddr);

/// A line of the system's tables of TCP sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    local: SocketAddr,
    remote: SocketAddr,
    state: SocketState,
    /// Bytes that were written and not acknowledged.
    unsent: u32,
    /// Bytes that were received and not read; for a listener, connections that were not accepted yet.
    unread: u32,
    /// Number of the socket, as its descriptors name it.
    pub inode: u64,
}

/// Returns the number of the socket that a descriptor's link names, such as `socket:[4711]`.
pub fn inode(link: &Path) -> Option<u64> {
    let number = link.to_str()?.strip_prefix("socket:[")?;
    number.strip_suffix(']')?.parse().ok()
}

impl Row {
    /// Reads a line of the table.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        let local = address(words.next()?)?;
        let remote = address(words.next()?)?;
        let state = u8::from_str_radix(words.next()?, 16).ok()?;
        let (unsent, unread) = words.next()?.split_once(':')?;
        let unsent = u32::from_str_radix(unsent, 16).ok()?;
        let unread = u32::from_str_radix(unread, 16).ok()?;
        let inode = words.nth(4)?.parse().ok()?;
        Some(Self::new(local, remote, state, unsent, unread, inode))
    }

    /// Returns the line of a socket, by the kernel's number of its state and its lengths of both queues.
    pub fn new(
        local: SocketAddr,
        remote: SocketAddr,
        state: u8,
        unsent: u32,
        unread: u32,
        inode: u64,
    ) -> Self {
        // The other end's last word counts as a byte.
        let last_word = u32::from(state == CLOSED_BY_OTHER);
        Self {
            local,
            remote,
            state: SocketState::of(state),
            unsent,
            unread: unread.saturating_sub(last_word),
            inode,
        }
    }

    /// Returns whether the connection has ended, and the system keeps it for a minute.
    pub fn has_ended(&self) -> bool {
        self.state == SocketState::Ended
    }

    /// Returns what the table tells of the socket. Nagle's algorithm and the round trip are not in it.
    pub fn socket(&self) -> Socket {
        let socket = Socket {
            local: self.local,
            remote: Some(self.remote),
            state: self.state,
            unaccepted: 0,
            is_without_nodelay: false,
            is_queued: self.unsent > 0,
            is_held_by_nagle: false,
            round_trip_us: None,
            unread: Some(self.unread),
            unsent: Some(self.unsent),
        };
        if self.state != SocketState::Listens {
            return socket;
        }
        Socket {
            remote: None,
            unaccepted: self.unread,
            is_queued: false,
            unread: None,
            unsent: None,
            ..socket
        }
    }
}

/// Reads an address such as `0100007F:1F90`, which is 127.0.0.1:8080: 32-bit words in memory order, and the port.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
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

/// Returns the TCP sockets of the process's network namespace, of any process, as they are read: there may be a hundred
/// thousand, most of which have ended.
pub fn table(process: Process) -> impl Iterator<Item = Row> {
    let tables = ["net/tcp", "net/tcp6"].into_iter();
    tables
        .filter_map(move |table| File::open(process.path(table)).ok())
        .flat_map(|file| BufReader::new(file).lines().map_while(Result::ok))
        .filter_map(|line| Row::parse(&line))
}

/// Numbers of TCP connections and of datagrams of a network namespace, by the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamespaceCounts {
    /// Connections that were opened, with those that failed.
    pub opened: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that failed before they were established, such as those that were refused.
    pub failed: u64,
    /// Datagrams that were read.
    pub datagrams: u64,
}

/// Returns the numbers of the process's network namespace since it began.
pub fn namespace_counts(process: Process) -> Option<NamespaceCounts> {
    let text = fs::read_to_string(process.path("net/snmp")).ok()?;
    // A system without IPv6 has no such table.
    let of_ipv6 = fs::read_to_string(process.path("net/snmp6")).unwrap_or_default();
    let mut lines = of_ipv6.lines();
    let of_ipv6 = lines.find_map(|line| line.strip_prefix("Udp6InDatagrams"));
    let of_ipv6 = of_ipv6.and_then(|number| number.trim().parse().ok());
    Some(NamespaceCounts {
        opened: count(&text, "Tcp: ", "ActiveOpens")?,
        accepted: count(&text, "Tcp: ", "PassiveOpens")?,
        failed: count(&text, "Tcp: ", "AttemptFails")?,
        datagrams: count(&text, "Udp: ", "InDatagrams")? + of_ipv6.unwrap_or(0),
    })
}

/// Returns a count of a protocol, such as `Tcp: `, in the system's table of counts: a line of names, then one of values.
fn count(table: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(protocol));
    let (mut names, mut values) = (lines.next()?.split(' '), lines.next()?.split(' '));
    values.nth(names.position(|one| one == name)?)?.parse().ok()
}

/// Connections of a process so far.
#[derive(Default)]
pub struct Watched {
    looks: u32,
    sides: BTreeMap<Side, Peers>,
    connections: Connected,
    /// Connections that were closed at this end first.
    closed: Connected,
    hashes: RandomState,
    round_trips: BTreeMap<Side, (f64, u32)>,
    /// Numbers of open connections to each address that this process connects to, look by look.
    open: BTreeMap<SocketAddr, Vec<i64>>,
    /// Data that was received and not read.
    unread: Backlog,
    /// Data that was written and that the other end does not take.
    unsent: Backlog,
    /// Time of the next look at the whole table, if there was one.
    table_due: Option<Instant>,
}

/// Connections that were seen, by a hash of their ends: among as many as are remembered, two have the same one in one of a
/// billion looks.
#[derive(Default)]
struct Connected(HashSet<u64>);

impl Connected {
    /// Returns whether a connection with this hash was not seen before, and remembers it.
    fn is_new(&mut self, hash: u64) -> bool {
        self.0.len() < MOST_CONNECTIONS && self.0.insert(hash)
    }
}

/// Data that waits on connections, one way.
#[derive(Default)]
struct Backlog {
    last: HashMap<Ends, Data>,
    /// Data at the look that goes on.
    now: HashMap<Ends, Data>,
}

/// Data that waits on one connection.
#[derive(Clone, Copy)]
struct Data {
    side: Side,
    /// Bytes at the last look.
    bytes: u32,
    /// Looks in a row at which it waited.
    looks: u32,
}

impl Backlog {
    /// Adds a connection at this look. With `may_fall`, data still waits when some of it was taken.
    fn add(&mut self, ends: Ends, side: Side, bytes: Option<u32>, may_fall: bool) {
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
            return;
        };
        let looks = match self.last.get(&ends) {
            Some(old) if may_fall || old.bytes <= bytes => old.looks + 1,
            _ => 1,
        };
        self.now.insert(ends, Data { side, bytes, looks });
    }

    /// Ends a look.
    fn next(&mut self) {
        self.last = std::mem::take(&mut self.now);
    }

    /// Returns for each side the number of connections whose data has waited for long, and the most bytes of one.
    fn for_long(&self, looks: u32) -> BTreeMap<Side, (usize, u32)> {
        let mut sides: BTreeMap<Side, (usize, u32)> = BTreeMap::new();
        for data in self.last.values() {
            if data.looks >= UNREAD_LOOKS
                && f64::from(data.looks) >= UNREAD_SHARE * f64::from(looks)
            {
                let (connections, most) = sides.entry(data.side).or_default();
                *connections += 1;
                *most = (*most).max(data.bytes);
            }
        }
        sides
    }
}

impl Watched {
    fn side(&self, (local, remote): Ends) -> Side {
        let accepts = Side::Accepts(local.port());
        if self.sides.contains_key(&accepts) {
            accepts
        } else {
            Side::Connects(remote)
        }
    }

    /// Adds a look at all sockets of the process.
    pub fn look(&mut self, own: &[Socket]) {
        let is_first = self.looks == 0;
        self.looks += 1;
        for listener in own.iter().filter(|one| one.state == SocketState::Listens) {
            let accepts = Side::Accepts(listener.local.port());
            let peers = self.sides.entry(accepts).or_default();
            peers.unaccepted_looks += u32::from(listener.unaccepted > 0);
            peers.most_unaccepted = peers.most_unaccepted.max(listener.unaccepted);
        }
        for peers in self.sides.values_mut() {
            peers.open = 0;
        }
        let (mut looked_at, mut without_nodelay) = (HashSet::new(), BTreeMap::new());
        for socket in own.iter().filter(|one| one.state == SocketState::Open) {
            let Some(ends) = socket.remote.map(|remote| (socket.local, remote)) else {
                continue;
            };
            // Two descriptors may stand for one socket.
            if !looked_at.insert(ends) {
                continue;
            }
            let is_new = self.connections.is_new(self.hashes.hash_one(ends));
            let side = self.side(ends);
            let peers = self.sides.entry(side).or_default();
            peers.open += 1;
            peers.opened += usize::from(is_new && !is_first);
            let without: &mut usize = without_nodelay.entry(side).or_default();
            *without += usize::from(socket.is_without_nodelay);
            peers.without_nodelay = peers.without_nodelay.max(*without);
            peers.queued_looks += u32::from(socket.is_queued);
            peers.held_looks += u32::from(socket.is_held_by_nagle);
            self.unread.add(ends, side, socket.unread, false);
            let unsent = socket.unsent.filter(|bytes| *bytes >= SLOW_CLIENT_BYTES);
            self.unsent.add(ends, side, unsent, true);
            if let Some(round_trip_us) = socket.round_trip_us {
                let (sum, count) = self.round_trips.entry(side).or_default();
                *sum += f64::from(round_trip_us) / 1e3;
                *count += 1;
            }
        }
        self.unread.next();
        self.unsent.next();
        for (side, peers) in &mut self.sides {
            peers.most_open = peers.most_open.max(peers.open);
            if let Side::Connects(to) = side {
                let open = self.open.entry(*to).or_default();
                open.push(i64::try_from(peers.open).unwrap_or(i64::MAX));
            }
        }
    }

    /// Looks for connections that have ended, if it is time for another look at the whole table, or the time `is_over`.
    pub fn look_for_ended(&mut self, process: Process, is_over: bool) {
        let began = Instant::now();
        let is_due = self.table_due.is_none_or(|due| due <= began);
        if is_due || is_over {
            self.add_ended(table(process), self.table_due.is_none());
            self.table_due = Some(began + PAUSE_OF_TABLES.max(began.elapsed() * PAUSE_OF_TABLE));
        }
    }

    /// Adds the connections of `table` that have ended since the last time, and those that have also begun since then. The
    /// system keeps a connection on the side that closed it first.
    fn add_ended(&mut self, table: impl IntoIterator<Item = Row>, is_first: bool) {
        for row in table.into_iter().filter(Row::has_ended) {
            let ends = (row.local, row.remote);
            let (hash, side) = (self.hashes.hash_one(ends), self.side(ends));
            let is_new = self.connections.is_new(hash);
            let has_just_ended = self.closed.is_new(hash) && !is_first;
            // Count only addresses that this process deals with; others are another process's.
            if let Some(peers) = self.sides.get_mut(&side) {
                peers.ended += usize::from(is_new && !is_first);
                peers.closed_here += usize::from(has_just_ended);
            }
        }
    }

    /// Returns the figures that the rules judge. `before` and `now` are the namespace's counts at the beginning and the end
    /// of these `seconds`.
    pub fn finish(
        self,
        seconds: f64,
        before: Option<NamespaceCounts>,
        now: Option<NamespaceCounts>,
    ) -> Connections {
        let since = |count: fn(NamespaceCounts) -> u64| {
            let (before, now) = before.zip(now)?;
            Some(count(now).saturating_sub(count(before)))
        };
        let unread = self.unread.for_long(self.looks);
        let unsent = self.unsent.for_long(self.looks);
        let mut connections = Connections {
            seconds,
            looks: self.looks,
            namespace_opened: since(|counts| counts.opened),
            namespace_accepted: since(|counts| counts.accepted),
            namespace_failed: since(|counts| counts.failed),
            namespace_datagrams: since(|counts| counts.datagrams),
            ..Connections::default()
        };
        for (side, mut peers) in self.sides {
            peers.opened_per_second = peers.opened as f64 / seconds;
            (peers.unread, peers.most_unread) = unread.get(&side).copied().unwrap_or_default();
            (peers.untaken, peers.most_untaken) = unsent.get(&side).copied().unwrap_or_default();
            let round_trips = self.round_trips.get(&side);
            peers.round_trip_ms = round_trips.map(|(sum, count)| sum / f64::from(*count));
            let of_side = match side {
                Side::Connects(to) => {
                    peers.address = to.to_string();
                    let open = self.open.get(&to).into_iter().flatten();
                    peers.growth = Some(Part::of(open.copied()));
                    &mut connections.upstreams
                }
                Side::Accepts(port) => {
                    peers.address = format!("port {port}");
                    &mut connections.listeners
                }
            };
            of_side.push(peers);
        }
        for of_side in [&mut connections.upstreams, &mut connections.listeners] {
            of_side.sort_by_key(|peers| std::cmp::Reverse((peers.opened, peers.most_open)));
        }
        connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_its_socket() {
        assert_eq!(inode(Path::new("socket:[4711]")), Some(4711));
        assert_eq!(inode(Path::new("/dev/null")), None);
    }

    #[test]
    fn a_line_of_the_systems_table_is_read_and_a_damaged_one_is_not() {
        let line = "   1: 0100007F:1F90 0200007F:D431 06 00000000:00000000 00:00000000 00000000  1000        0 4711 1";
        let ends = ([127, 0, 0, 1], 8080).into();
        let ends = (ends, ([127, 0, 0, 2], 54321).into());
        let row = Row::parse(line).expect("a line");
        assert_eq!((row.local, row.remote), ends);
        assert_eq!((row.state, row.inode), (SocketState::Ended, 4711));
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
            assert_eq!(Row::parse(damaged), None);
        }
    }

    #[test]
    fn data_counts_as_unread_if_none_of_it_is_read_for_long() {
        let ends: Ends = (([127, 0, 0, 1], 8080).into(), ([127, 0, 0, 1], 5000).into());
        let row = |unread| Row {
            local: ends.0,
            remote: ends.1,
            state: SocketState::Open,
            unsent: 0,
            unread,
            inode: 1,
        };
        let unread = |looks: &[u32]| {
            let mut watched = Watched::default();
            for bytes in looks {
                watched.look(&[row(*bytes).socket()]);
            }
            watched.finish(1.0, None, None).upstreams[0].unread
        };
        let long = vec![7; UNREAD_LOOKS as usize];
        assert_eq!(unread(&long), 1);
        assert_eq!(unread(&long[1..]), 0, "not long enough");
        assert_eq!(unread(&[&[9][..], &long[1..]].concat()), 0, "some was read");
        assert_eq!(unread(&[&[3][..], &long[1..]].concat()), 1, "more came");
        assert_eq!(unread(&[&long[..], &[0]].concat()), 0, "all was read");
        let nothing = vec![0; long.len()];
        assert_eq!(
            unread(&[&nothing[..], &long[..]].concat()),
            1,
            "half of the looks"
        );
        assert_eq!(
            unread(&[&[0, 0], &nothing[..], &long[..]].concat()),
            0,
            "too late"
        );
    }

    #[test]
    fn the_side_that_closed_first_is_told() {
        let (server, client) = ("127.0.0.1:8080", "127.0.0.1:5000");
        let closed_here = |local: &str, remote: &str| {
            let row = |local: &str, remote: &str, state| Row {
                local: local.parse().unwrap(),
                remote: remote.parse().unwrap(),
                state,
                unsent: 0,
                unread: 0,
                inode: 1,
            };
            let mut watched = Watched::default();
            let listener = row(server, "0.0.0.0:0", SocketState::Listens).socket();
            watched.add_ended([], true);
            watched.look(&[listener, row(server, client, SocketState::Open).socket()]);
            for _ in 0..2 {
                watched.add_ended([row(local, remote, SocketState::Ended)], false);
            }
            watched.finish(1.0, None, None).listeners[0].closed_here
        };
        assert_eq!(closed_here(server, client), 1, "seen twice, counted once");
        assert_eq!(closed_here(client, server), 0);
    }

    #[test]
    fn a_listener_tells_how_many_connections_wait() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000081 00:00000000 00000000  1000        0 99 1";
        let socket = Row::parse(line).expect("a line").socket();
        assert_eq!(
            (socket.state, socket.unaccepted),
            (SocketState::Listens, 129)
        );
        assert!(socket.remote.is_none() && !socket.is_queued);
    }
}
