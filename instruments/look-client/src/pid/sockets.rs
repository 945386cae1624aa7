//! Sockets of another process.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use diagnosis::Process;
use diagnosis::datagrams::{self, DatagramSocket};
use diagnosis::sockets::{Row, Socket, inode, table};
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

/// Messages of netlink begin at multiples of so many bytes.
const ALIGNED: usize = 4;

/// A way to list the sockets of a process.
pub(crate) struct OwnSockets {
    process: Process,
    /// Asks the kernel, if the process is in our network namespace: it lists no connections that have ended. The file has
    /// them, as many as a hundred thousand, and takes ten times as long then.
    kernel: Option<netlink_sys::Socket>,
}

impl OwnSockets {
    pub(crate) fn of(process: Process) -> Self {
        let namespace = |process: Process| fs::read_link(process.path("ns/net")).ok();
        let ours = namespace(Process::this());
        let is_ours = ours.is_some() && namespace(process) == ours;
        let kernel = netlink_sys::Socket::new(NETLINK_SOCK_DIAG);
        Self {
            process,
            kernel: kernel.ok().filter(|_| is_ours),
        }
    }

    /// Returns the TCP sockets and the UDP sockets that the process has descriptors of, or `None` if these cannot be listed.
    pub(crate) fn list(&self) -> Option<(Vec<Socket>, Vec<DatagramSocket>)> {
        let rows = self.rows();
        let udp = datagrams::table(self.process);
        let mut inodes = HashSet::new();
        for entry in fs::read_dir(self.process.path("fd")).ok()?.flatten() {
            let link = fs::read_link(entry.path()).unwrap_or_default();
            inodes.extend(inode(&link));
        }
        let own = rows.iter().filter(|row| inodes.contains(&row.inode));
        let datagrams = udp.iter().filter(|socket| inodes.contains(&socket.inode));
        Some((own.map(Row::socket).collect(), datagrams.copied().collect()))
    }

    /// Returns the TCP sockets of the namespace that have not ended.
    fn rows(&self) -> Vec<Row> {
        let asked = self.kernel.as_ref().and_then(|kernel| {
            let mut rows = not_ended(kernel, AF_INET)?;
            // A system without IPv6 has none of it.
            rows.extend(not_ended(kernel, AF_INET6).unwrap_or_default());
            Some(rows)
        });
        asked.unwrap_or_else(|| table(self.process).filter(|row| !row.has_ended()).collect())
    }
}

/// Asks the kernel for the TCP sockets of an address family, or returns `None` if it does not tell.
fn not_ended(kernel: &netlink_sys::Socket, family: u8) -> Option<Vec<Row>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all() - StateFlags::TIME_WAIT,
        socket_id: SocketId::new_v4(),
    });
    let mut message = NetlinkMessage::new(header, request.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    kernel.send(&bytes, 0).ok()?;

    let mut rows = Vec::new();
    loop {
        let (part, _) = kernel.recv_from_full().ok()?;
        let mut left = &part[..];
        while !left.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(left).ok()?;
            match message.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    rows.push(row(&response.header));
                }
                NetlinkPayload::Done(_) => return Some(rows),
                _ => return None,
            }
            let length = usize::try_from(message.header.length).ok()?;
            left = left
                .get(length.next_multiple_of(ALIGNED)..)
                .unwrap_or_default();
        }
    }
}

/// Returns a socket as the system's file has it.
fn row(socket: &InetResponseHeader) -> Row {
    let ends = &socket.socket_id;
    let address = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    Row::new(
        address(ends.source_address, ends.source_port),
        address(ends.destination_address, ends.destination_port),
        socket.state,
        socket.send_queue,
        socket.recv_queue,
        u64::from(socket.inode),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use diagnosis::sockets::SocketState;

    use super::*;

    #[test]
    fn the_kernel_lists_what_the_file_does_but_for_what_has_ended() {
        let listeners = ["127.0.0.1:0", "[::1]:0"].map(TcpListener::bind);
        let mut kept = Vec::new();
        // A machine may be without IPv6.
        for listener in listeners.iter().flatten() {
            let address = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"is anybody there?").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            kept.push((client, listener.accept().unwrap()));
            // The client ends first, so the system keeps its end.
            drop(TcpStream::connect(address).unwrap());
            drop(listener.accept().unwrap());
        }
        let own = |sockets: OwnSockets| {
            let (tcp, _) = sockets.list().unwrap();
            // The client's own end changes until the other end's acknowledgement has come.
            let stays = tcp
                .iter()
                .filter(|socket| socket.state != SocketState::Other);
            let mut lines: Vec<String> = stays.map(|socket| format!("{socket:?}")).collect();
            lines.sort();
            lines
        };
        let asks = OwnSockets::of(Process::this());
        assert!(asks.kernel.is_some());
        assert!(asks.rows().iter().all(|row| !row.has_ended()));
        let reads = OwnSockets {
            process: Process::this(),
            kernel: None,
        };
        let (asked, read) = (own(asks), own(reads));
        assert_eq!(asked, read);
        let unread = asked
            .iter()
            .filter(|line| line.contains("unread: Some(17)"));
        assert_eq!(unread.count(), kept.len(), "{asked:#?}");
    }
}
