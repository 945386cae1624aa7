//! What the system lets a load have: open files, and the documented ports.

use std::net::{Ipv4Addr, TcpListener};

use super::finding::Finding;

/// Files that a server or generator opens beside its connections.
const BESIDE: u64 = 100;

/// Looks at the limits that a load with `users` users meets.
pub(super) fn look(users: u32) -> Vec<Finding> {
    vec![
        open_files(u64::from(users) + BESIDE),
        port("port 8080", 8080, "the service"),
        port("port 6060", 6060, "profiles and counters"),
    ]
}

fn open_files(needed: u64) -> Finding {
    match loadgen::cpus::allow_open_files(needed) {
        Ok(()) => Finding::ok(
            "open files",
            format!("{needed} can be had, as the largest load needs"),
        ),
        Err(limit) => Finding::note(
            "open files",
            format!("{} at most", limit.allowed),
            format!(
                "the largest load needs {needed}: ulimit -n {needed} (as root if it refuses), or \
                 fewer users with --users"
            ),
        ),
    }
}

/// Tried and let go: nobody else can tell whether a port is free.
fn port(name: &'static str, number: u16, whose: &str) -> Finding {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, number)) {
        Ok(_) => Finding::ok(name, format!("free for {whose}")),
        Err(error) => Finding::note(
            name,
            format!("taken ({error})"),
            "cargo run -p chapter1 then needs --port or --admin-port; prove and check pick free ones",
        ),
    }
}
