//! What the kernel tells of one TCP socket of this process.
//!
//! The socket is the service's, which may close it at any moment, and its descriptor may be another file's the next
//! moment. That is sound, because all calls here only read, into memory of ours, and fail on what is no socket; and
//! no figure is taken for another socket's, because the descriptor stood for the same inode before and after. A
//! duplicate of the descriptor would be surer, and keep the connection open when the service closes it.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};

/// Where a figure of 32 bits is in the kernel's `struct tcp_info`, which only ever grows at its end.
const SND_MSS: usize = 4;
const UNACKED: usize = 6;
const LAST_DATA_SENT: usize = 11;
const RTT: usize = 17;
const SND_CWND: usize = 20;
const NOTSENT_BYTES: usize = 36;

/// Milliseconds for which a small piece waits, from which the other end delays its acknowledgement.
const LONG_MS: u32 = 10;

/// States of a socket, as the kernel numbers them.
const ESTABLISHED: u8 = 1;
const CLOSE_WAIT: u8 = 8;
const LISTEN: u8 = 10;

/// A socket at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpSocket {
    pub(crate) local: SocketAddr,
    /// Nothing, of one that is not connected.
    pub(crate) remote: Option<SocketAddr>,
    state: u8,
    /// Whether Nagle's algorithm is off.
    pub(crate) is_nodelay: bool,
    /// Segments that were sent and not acknowledged; of a listener, connections that nobody has accepted yet.
    unacknowledged: u32,
    /// Bytes that were written and not sent.
    unsent: u32,
    /// Bytes of a full segment.
    segment: u32,
    /// Segments that may be on their way at once.
    window: u32,
    /// Since the last piece was sent.
    since_sent_ms: u32,
    /// Smoothed, in microseconds.
    pub(crate) round_trip_us: u32,
}

impl TcpSocket {
    /// That of `descriptor`, if there is one.
    pub(crate) fn of(descriptor: i32) -> Option<Self> {
        let before = socket_inode(descriptor)?;
        let info: [u32; 64] = option(descriptor, libc::TCP_INFO)?;
        let [nodelay]: [u32; 1] = option(descriptor, libc::TCP_NODELAY)?;
        let local = address(descriptor, libc::getsockname)?;
        let remote = address(descriptor, libc::getpeername);
        let socket = Self {
            local,
            remote,
            state: info[0].to_ne_bytes()[0],
            is_nodelay: nodelay != 0,
            unacknowledged: info[UNACKED],
            unsent: info[NOTSENT_BYTES],
            segment: info[SND_MSS],
            window: info[SND_CWND],
            since_sent_ms: info[LAST_DATA_SENT],
            round_trip_us: info[RTT],
        };
        (socket_inode(descriptor) == Some(before)).then_some(socket)
    }

    pub(crate) fn listens(&self) -> bool {
        self.state == LISTEN
    }

    /// Connections of a listener that nobody has accepted yet.
    pub(crate) fn unaccepted(&self) -> u32 {
        self.unacknowledged
    }

    pub(crate) fn is_open(&self) -> bool {
        [ESTABLISHED, CLOSE_WAIT].contains(&self.state)
    }

    /// Whether something was written that has not been acknowledged.
    pub(crate) fn is_queued(&self) -> bool {
        self.unsent > 0 || self.unacknowledged > 0
    }

    /// Returns whether less than a segment has waited for an acknowledgement for long, and nothing else keeps it from being
    /// sent. Each small piece waits for a round trip; only an acknowledgement that the other end delays is a fault.
    pub(crate) fn is_held_by_nagle(&self) -> bool {
        let is_small = (1..self.segment).contains(&self.unsent);
        let is_alone = (1..self.window).contains(&self.unacknowledged);
        let is_long = self.since_sent_ms >= LONG_MS;
        !self.is_nodelay && is_small && is_alone && is_long
    }
}

/// Which socket it is, if it is one.
fn socket_inode(descriptor: i32) -> Option<libc::ino_t> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: it writes to `stat`, which has room for it, or fails; a descriptor may be any number.
    let failed = unsafe { libc::fstat(descriptor, stat.as_mut_ptr()) };
    if failed != 0 {
        return None;
    }
    // SAFETY: it was written.
    let stat = unsafe { stat.assume_init() };
    (stat.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(stat.st_ino)
}

/// The value of an option of TCP, with zeros where the kernel tells less; nothing of another kind of socket.
fn option<const WORDS: usize>(descriptor: i32, name: i32) -> Option<[u32; WORDS]> {
    let mut value = [0_u32; WORDS];
    let mut length = libc::socklen_t::try_from(size_of_val(&value)).ok()?;
    let to = value.as_mut_ptr().cast();
    // SAFETY: it writes at most `length` bytes to `value`, which has as many, or fails; a descriptor may be any number.
    let failed =
        unsafe { libc::getsockopt(descriptor, libc::IPPROTO_TCP, name, to, &raw mut length) };
    (failed == 0).then_some(value)
}

/// `getsockname` or `getpeername`.
type Ask = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

fn address(descriptor: i32, ask: Ask) -> Option<SocketAddr> {
    // Of 28 bytes the kernel writes 16 or all: the family, the port as it is sent, and for IPv6 four bytes more
    // before the address.
    let mut bytes = [0_u8; 28];
    let mut length = libc::socklen_t::try_from(bytes.len()).ok()?;
    // SAFETY: it writes at most `length` bytes to `bytes`, which has as many, or fails; a descriptor may be any number.
    let failed = unsafe { ask(descriptor, bytes.as_mut_ptr().cast(), &raw mut length) };
    if failed != 0 {
        return None;
    }
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    let ip = match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(&bytes[4..8]).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(&bytes[8..24]).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}
