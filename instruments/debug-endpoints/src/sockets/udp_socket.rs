//! Kernel's figures of one UDP socket of this process.

use diagnosis::datagrams::DatagramSocket;

use super::tcp_socket::{address, option, socket_inode};

/// Positions of figures in what the kernel tells of a socket's memory (`SK_MEMINFO_*`).
const RECEIVED: usize = 0;
const BUFFER: usize = 1;
const DROPPED: usize = 8;

/// Returns the UDP socket of `descriptor`, if it is one. The service may close it at any moment, so the descriptor must stand
/// for the same socket before and after.
#[allow(clippy::useless_conversion)] // Some systems number sockets by 32 bits.
pub(crate) fn of(descriptor: i32) -> Option<DatagramSocket> {
    let before = socket_inode(descriptor)?;
    let [protocol]: [u32; 1] = option(descriptor, libc::SOL_SOCKET, libc::SO_PROTOCOL)?;
    if i32::try_from(protocol) != Ok(libc::IPPROTO_UDP) {
        return None;
    }
    let memory: [u32; 9] = option(descriptor, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    let socket = DatagramSocket {
        inode: u64::from(before),
        local: address(descriptor, libc::getsockname)?,
        remote: address(descriptor, libc::getpeername),
        unread: memory[RECEIVED],
        dropped: memory[DROPPED],
        buffer: Some(memory[BUFFER]),
    };
    (socket_inode(descriptor) == Some(before)).then_some(socket)
}
