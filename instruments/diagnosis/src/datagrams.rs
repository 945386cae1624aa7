//! UDP sockets of a process, added up look by look, and the system's tables of them.
//!
//! The kernel drops what comes in on a socket whose buffer is full, and counts it. The sender is not told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::net::SocketAddr;

use crate::Process;
use crate::evidence::Datagrams;
use crate::sockets::address;

/// Most sockets that are told apart.
const MOST_SOCKETS: usize = 20_000;

/// The kernel's number of the state of a connected socket (`TCP_ESTABLISHED`).
const CONNECTED: &str = "01";

/// A UDP socket of the process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramSocket {
    /// Number of the socket, as its descriptors name it.
    pub inode: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// Address of the other end; `None` if the socket is not connected.
    pub remote: Option<SocketAddr>,
    /// Bytes of memory that received datagrams take which nobody has read.
    pub unread: u32,
    /// Datagrams that the kernel dropped since the socket was made. The count begins again after its largest number.
    pub dropped: u32,
    /// Bytes that its buffer takes, if that is known.
    pub buffer: Option<u32>,
}

impl DatagramSocket {
    /// Reads a line of the system's table.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        let local = address(words.next()?)?;
        let remote = address(words.next()?)?;
        let is_connected = words.next()? == CONNECTED;
        let (_, unread) = words.next()?.split_once(':')?;
        Some(Self {
            inode: words.nth(4)?.parse().ok()?,
            local,
            remote: is_connected.then_some(remote),
            unread: u32::from_str_radix(unread, 16).ok()?,
            dropped: words.nth(2)?.parse().ok()?,
            buffer: None,
        })
    }
}

/// Returns the UDP sockets of the process's network namespace, of any process.
pub fn table(process: Process) -> Vec<DatagramSocket> {
    let mut sockets = Vec::new();
    for table in ["net/udp", "net/udp6"] {
        let text = fs::read_to_string(process.path(table)).unwrap_or_default();
        sockets.extend(text.lines().filter_map(DatagramSocket::parse));
    }
    sockets
}

/// A remote address, or a port of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Port(u16),
    Connected(SocketAddr),
}

/// UDP sockets of a process so far.
#[derive(Default)]
pub struct WatchedDatagrams {
    looks: u32,
    sockets: HashMap<u64, Watched>,
}

/// One socket so far.
struct Watched {
    side: Side,
    /// Its state at the last look.
    last: DatagramSocket,
    dropped: u64,
    looks: u32,
    /// Looks at which datagrams waited.
    unread_looks: u32,
    most_unread: u32,
    /// Some were taken out.
    is_read: bool,
}

impl WatchedDatagrams {
    /// Adds a look at all UDP sockets of the process.
    pub fn look(&mut self, own: &[DatagramSocket]) {
        let is_first = self.looks == 0;
        self.looks += 1;
        // Two descriptors may stand for one socket.
        let mut looked_at = HashSet::new();
        for socket in own {
            let is_known = self.sockets.contains_key(&socket.inode);
            let has_room = is_known || self.sockets.len() < MOST_SOCKETS;
            if !has_room || !looked_at.insert(socket.inode) {
                continue;
            }
            let watched = self.sockets.entry(socket.inode).or_insert(Watched {
                side: Side::Port(0),
                // A socket that was made meanwhile has dropped nothing before.
                last: DatagramSocket {
                    dropped: if is_first { socket.dropped } else { 0 },
                    ..*socket
                },
                dropped: 0,
                looks: 0,
                unread_looks: 0,
                most_unread: 0,
                is_read: false,
            });
            watched.side = match socket.remote {
                Some(remote) => Side::Connected(remote),
                None => Side::Port(socket.local.port()),
            };
            watched.dropped += u64::from(socket.dropped.wrapping_sub(watched.last.dropped));
            watched.looks += 1;
            watched.unread_looks += u32::from(socket.unread > 0);
            watched.most_unread = watched.most_unread.max(socket.unread);
            watched.is_read |= socket.unread < watched.last.unread;
            watched.last = *socket;
        }
    }

    /// Returns the figures that the rules judge, those with most losses first.
    pub fn finish(self) -> Vec<Datagrams> {
        let mut sides: BTreeMap<Side, Vec<Watched>> = BTreeMap::new();
        for watched in self.sockets.into_values() {
            sides.entry(watched.side).or_default().push(watched);
        }
        let mut all = Vec::new();
        for (side, sockets) in sides {
            all.push(of_side(side, &sockets));
        }
        all.sort_by_key(|datagrams| std::cmp::Reverse(datagrams.dropped));
        all
    }
}

fn of_side(side: Side, sockets: &[Watched]) -> Datagrams {
    let mut datagrams = Datagrams {
        address: match side {
            Side::Port(port) => format!("port {port}"),
            Side::Connected(remote) => remote.to_string(),
        },
        is_connected: matches!(side, Side::Connected(_)),
        sockets: sockets.len(),
        lossy: sockets.iter().filter(|one| one.dropped > 0).count(),
        ..Datagrams::default()
    };
    let (mut looks, mut unread_looks) = (0, 0);
    for socket in sockets {
        if datagrams.lossy > 0 && socket.dropped == 0 {
            continue;
        }
        datagrams.dropped += socket.dropped;
        datagrams.most_unread = datagrams.most_unread.max(socket.most_unread);
        datagrams.is_read |= socket.is_read;
        looks += socket.looks;
        unread_looks += socket.unread_looks;
        let smallest = datagrams.buffer.unwrap_or(u32::MAX);
        datagrams.buffer = socket.last.buffer.map(|buffer| buffer.min(smallest));
    }
    datagrams.unread_share = f64::from(unread_looks) / f64::from(looks.max(1));
    datagrams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(inode: u64, port: u16, unread: u32, dropped: u32) -> DatagramSocket {
        DatagramSocket {
            inode,
            local: ([0, 0, 0, 0], port).into(),
            remote: None,
            unread,
            dropped,
            buffer: Some(212_992),
        }
    }

    fn seen(looks: &[&[DatagramSocket]]) -> Vec<Datagrams> {
        let mut watched = WatchedDatagrams::default();
        for own in looks {
            watched.look(own);
        }
        watched.finish()
    }

    #[test]
    fn a_line_of_the_systems_table_is_read_and_a_damaged_one_is_not() {
        let line = " 6311: 0100007F:1F90 00000000:0000 07 00000000:00033FC0 00:00000000 00000000     0        0 4711 2 \
                    0000000000000000 18716";
        let read = DatagramSocket::parse(line).expect("a line");
        assert_eq!(read.local, ([127, 0, 0, 1], 8080).into());
        assert_eq!((read.inode, read.remote), (4711, None));
        assert_eq!((read.unread, read.dropped), (212_928, 18_716));
        let connected = line
            .replace(" 07 ", " 01 ")
            .replace("00000000:0000", "0100007F:0035");
        let read = DatagramSocket::parse(&connected).expect("a line");
        assert_eq!(read.remote, Some(([127, 0, 0, 1], 53).into()));
        for damaged in [&line[..90], "", "  sl  local_address rem_address   st"] {
            assert_eq!(DatagramSocket::parse(damaged), None);
        }
    }

    #[test]
    fn what_was_dropped_before_the_look_does_not_count() {
        let seen = seen(&[
            &[socket(1, 8125, 9, 5000)],
            &[socket(1, 8125, 9, 5007), socket(1, 8125, 9, 5007)],
            // One more socket, made since then.
            &[socket(1, 8125, 9, 5007), socket(2, 8125, 0, 4)],
        ]);
        assert_eq!(seen.len(), 1, "one port: {seen:?}");
        let one = &seen[0];
        assert_eq!((one.sockets, one.lossy, one.dropped), (2, 2, 11));
        assert_eq!((one.address.as_str(), one.most_unread), ("port 8125", 9));
        assert!((one.unread_share - 0.75).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn the_count_of_a_socket_begins_again_after_its_largest_number() {
        let seen = seen(&[
            &[socket(1, 8125, 0, u32::MAX - 1)],
            &[socket(1, 8125, 0, 2)],
        ]);
        assert_eq!(seen[0].dropped, 4);
    }

    #[test]
    fn a_socket_is_read_if_less_waits_than_before() {
        let is_read = |looks: [u32; 3]| {
            let looks = looks.map(|unread| [socket(1, 8125, unread, 0)]);
            seen(&[&looks[0], &looks[1], &looks[2]])[0].is_read
        };
        assert!(is_read([700, 900, 800]));
        assert!(!is_read([700, 800, 800]));
    }

    #[test]
    fn sockets_that_lose_nothing_say_nothing_of_those_that_do() {
        let seen = seen(&[
            &[socket(1, 8125, 0, 0), socket(2, 8125, 700, 0)],
            &[socket(1, 8125, 0, 0), socket(2, 8125, 700, 90)],
        ]);
        let one = &seen[0];
        assert_eq!((one.sockets, one.lossy, one.dropped), (2, 1, 90));
        assert!(
            (one.unread_share - 1.0).abs() < 1e-9 && !one.is_read,
            "{one:?}"
        );
    }
}
