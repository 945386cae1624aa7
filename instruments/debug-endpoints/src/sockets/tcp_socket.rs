//! Kernel's figures of one TCP socket of this process.
//!
//! The service may close the socket at any moment, and its descriptor may then stand for another file. That is sound,
//! because all calls here only read, into memory of ours, and fail on anything that is no socket. No figure is taken
//! for another socket's, because the descriptor must stand for the same inode before and after. A duplicate of the
//! descriptor would be safer, but it would keep the connection open after the service closes it.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};

use diagnosis::sockets::{Socket, SocketState};

/// Positions of 32-bit figures in the kernel's `struct tcp_info`, which only ever grows at its end.
const SND_MSS: usize = 4;
const UNACKED: usize = 6;
const LAST_DATA_SENT: usize = 11;
const RTT: usize = 17;
const SND_CWND: usize = 20;
const NOTSENT_BYTES: usize = 36;

/// Shortest wait of a small piece, in milliseconds, that means that the other end delays its acknowledgement.
const LONG_MS: u32 = 10;

/// A socket at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpSocket {
    local: SocketAddr,
    /// Address of the other end; `None` if the socket is not connected.
    remote: Option<SocketAddr>,
    state: u8,
    /// True if Nagle's algorithm is off.
    is_nodelay: bool,
    /// Segments that were sent and not acknowledged; for a listener, connections that were not accepted yet.
    unacknowledged: u32,
    /// Bytes that were written and not sent.
    unsent: u32,
    /// Size of a full segment, in bytes.
    segment: u32,
    /// Most segments that may be in flight at once.
    window: u32,
    /// Time since the last data was sent, in milliseconds.
    since_sent_ms: u32,
    /// Smoothed round-trip time, in microseconds.
    round_trip_us: u32,
    /// Bytes that were received and not read, if the system tells.
    waiting_to_be_read: Option<u32>,
    /// Bytes that were written and not acknowledged, if the system tells.
    waiting_to_be_taken: Option<u32>,
}

impl TcpSocket {
    /// Returns the TCP socket of `descriptor`, if it is one.
    pub(crate) fn of(descriptor: i32) -> Option<Self> {
        let before = socket_inode(descriptor)?;
        let info: [u32; 64] = option(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO)?;
        let [nodelay]: [u32; 1] = option(descriptor, libc::IPPROTO_TCP, libc::TCP_NODELAY)?;
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
            waiting_to_be_read: bytes(descriptor, libc::FIONREAD),
            waiting_to_be_taken: bytes(descriptor, libc::TIOCOUTQ),
        };
        (socket_inode(descriptor) == Some(before)).then_some(socket)
    }

    /// Returns what the rules need to know of it.
    pub(crate) fn socket(&self) -> Socket {
        let state = SocketState::of(self.state);
        let listens = state == SocketState::Listens;
        Socket {
            local: self.local,
            remote: self.remote,
            state,
            unaccepted: if listens { self.unacknowledged } else { 0 },
            is_without_nodelay: !self.is_nodelay,
            is_queued: self.unsent > 0 || self.unacknowledged > 0,
            is_held_by_nagle: self.is_held_by_nagle(),
            round_trip_us: Some(self.round_trip_us),
            unread: self.waiting_to_be_read,
            unsent: self.waiting_to_be_taken,
        }
    }

    /// Returns whether less than a segment has waited for an acknowledgement for long, while nothing else keeps it from
    /// being sent. Each small piece waits for a round trip; it is a fault only if the other end delays the
    /// acknowledgement.
    fn is_held_by_nagle(&self) -> bool {
        let is_small = (1..self.segment).contains(&self.unsent);
        let is_alone = (1..self.window).contains(&self.unacknowledged);
        let is_long = self.since_sent_ms >= LONG_MS;
        !self.is_nodelay && is_small && is_alone && is_long
    }
}

/// Returns the inode of the socket, if the descriptor stands for one.
pub(super) fn socket_inode(descriptor: i32) -> Option<libc::ino_t> {
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

/// Returns the value of an option, with zeros for words that the kernel does not write, or `None` for a socket that has none
/// of this level.
pub(super) fn option<const WORDS: usize>(
    descriptor: i32,
    level: i32,
    name: i32,
) -> Option<[u32; WORDS]> {
    let mut value = [0_u32; WORDS];
    let mut length = libc::socklen_t::try_from(size_of_val(&value)).ok()?;
    let to = value.as_mut_ptr().cast();
    // SAFETY: it writes at most `length` bytes to `value`, which has as many, or fails; a descriptor may be any number.
    let failed = unsafe { libc::getsockopt(descriptor, level, name, to, &raw mut length) };
    (failed == 0).then_some(value)
}

/// Returns the number of bytes for which `ioctl` is asked, or `None` for a listener and what is no socket.
fn bytes(descriptor: i32, request: libc::Ioctl) -> Option<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: these requests write one number to `bytes`, or fail; a descriptor may be any number.
    let failed = unsafe { libc::ioctl(descriptor, request, &raw mut bytes) };
    u32::try_from(bytes).ok().filter(|_| failed == 0)
}

/// Type of `getsockname` and `getpeername`.
pub(super) type Ask = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

pub(super) fn address(descriptor: i32, ask: Ask) -> Option<SocketAddr> {
    // The kernel writes 16 bytes for IPv4 and 28 for IPv6: the family, the port in network order, for IPv6 four more
    // bytes, then the address.
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
