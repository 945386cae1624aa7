//! Sockets that tasks wait for: their other ends, or the ports at which they listen.
//!
//! Tokio keeps a socket in a `PollEvented`, with its descriptor. The system's tables say what it is connected to.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use diagnosis::evidence::numbered;
use diagnosis::sockets::{self, Socket, SocketState};

use crate::model::Task;
use crate::pass::Place;
use crate::process::Process;
use crate::types::{Form, Type};
use crate::value::{Reach, Reading, Value};

/// Path of the type of a value that has a descriptor.
const WITH_DESCRIPTOR: &str = "tokio::io::poll_evented::PollEvented";

/// Deepest nesting of values, and of types, that is looked through.
const DEEPEST: usize = 24;
const DEEPEST_TYPES: usize = 64;

/// Most values of one future that are looked at.
const MOST_VALUES: usize = 256;

/// Types of a program that can lead to a descriptor.
#[derive(Default)]
pub(crate) struct Sockets {
    leads: RefCell<HashMap<Place, bool>>,
}

impl Sockets {
    /// Returns the nearest descriptor of a future, or `None` if it has none, or several that are equally near.
    pub(crate) fn descriptor(&self, reading: &Reading<'_, '_, '_>, future: Value) -> Option<u64> {
        let (mut level, mut seen) = (vec![future], HashSet::new());
        for _ in 0..DEEPEST {
            let (mut found, mut next) = (Vec::new(), Vec::new());
            for value in level {
                if !self.leads(reading, value.of, 0) || seen.len() >= MOST_VALUES {
                    continue;
                }
                let Some(of) = reading.type_of(value).filter(|_| seen.insert(value)) else {
                    continue;
                };
                if &*of.path == WITH_DESCRIPTOR {
                    let descriptor = reading.find(value, "fd", Reach::WithinValue)?;
                    found.push(reading.number(descriptor)?);
                    continue;
                }
                let fields = reading.fields(value, &of).into_iter();
                next.extend(fields.map(|(_, field)| field));
                next.extend(reading.target(value, &of));
            }
            found.dedup();
            match found[..] {
                [] if next.is_empty() => return None,
                [] => level = next,
                [one] => return Some(one),
                _ => return None,
            }
        }
        None
    }

    /// Returns whether values of a type can lead to a descriptor.
    fn leads(&self, reading: &Reading<'_, '_, '_>, at: Place, depth: usize) -> bool {
        if let Some(known) = self.leads.borrow().get(&at) {
            return *known;
        }
        if depth > DEEPEST_TYPES {
            return false;
        }
        // A type that contains itself leads where its other parts do.
        self.leads.borrow_mut().insert(at, false);
        let of = reading.types.get(at);
        let leads = of.is_some_and(|of| {
            let mut parts = parts(&of).into_iter();
            &*of.path == WITH_DESCRIPTOR || parts.any(|part| self.leads(reading, part, depth + 1))
        });
        self.leads.borrow_mut().insert(at, leads);
        leads
    }
}

/// Returns the types of a type's fields, in all of its variants, and of what it points to.
fn parts(of: &Type) -> Vec<Place> {
    let mut parts: Vec<Place> = of.fields.iter().map(|field| field.of).collect();
    match &of.form {
        Form::Pointer(Some(target)) => parts.push(*target),
        Form::Variants { variants, .. } => {
            parts.extend(variants.iter().map(|variant| variant.field.of));
        }
        _ => {}
    }
    parts
}

/// Descriptors with the numbers of their sockets, which the system gives to no other.
pub(crate) type Numbers = HashMap<u64, u64>;

/// Returns the sockets behind the descriptors of waits.
pub(crate) fn numbers(process: Process, tasks: &[Task]) -> Numbers {
    let mut numbers = Numbers::new();
    for descriptor in tasks
        .iter()
        .flat_map(|task| &task.waits)
        .filter_map(|wait| wait.descriptor)
    {
        numbers.entry(descriptor).or_insert_with(|| {
            let link = std::fs::read_link(process.path(&format!("fd/{descriptor}")));
            // No socket has the number 0.
            sockets::inode(&link.unwrap_or_default()).unwrap_or_default()
        });
    }
    numbers
}

/// Adds to waits what their sockets are connected to. A descriptor must have stood for the same socket `before` the process
/// was read. Hosts are numbered, except for this machine, and no client has an address.
pub(crate) fn add_peers(process: Process, tasks: &mut [Task], before: &Numbers) {
    let now = numbers(process, tasks);
    if now.is_empty() {
        return;
    }
    let wanted: HashSet<u64> = now.values().copied().collect();
    let (mut own, mut ports) = (HashMap::new(), HashSet::new());
    for row in sockets::table(process.diagnosis()) {
        let socket = row.socket();
        if socket.state == SocketState::Listens {
            ports.insert(socket.local.port());
        }
        // A socket that belongs to no process any more has the number 0.
        if row.inode != 0 && wanted.contains(&row.inode) {
            own.insert(row.inode, socket);
        }
    }
    let mut hosts = Vec::new();
    for wait in tasks.iter_mut().flat_map(|task| &mut task.waits) {
        let Some(descriptor) = wait.descriptor else {
            continue;
        };
        let number = now
            .get(&descriptor)
            .filter(|now| before.get(&descriptor) == Some(*now));
        let socket = number.and_then(|number| own.get(number));
        wait.peer = socket.and_then(|socket| peer(socket, &ports, &mut hosts));
    }
}

/// Returns what a socket is connected to, or the port at which it listens. `ports` are those at which others do; `hosts`
/// are those that have numbers.
fn peer(socket: &Socket, ports: &HashSet<u16>, hosts: &mut Vec<IpAddr>) -> Option<String> {
    let port = socket.local.port();
    let remote = match (socket.state, socket.remote) {
        (SocketState::Listens, _) => return Some(format!("port {port}")),
        (SocketState::Open, Some(_)) if ports.contains(&port) => {
            return Some(format!("a client of port {port}"));
        }
        (SocketState::Open, Some(remote)) => remote,
        _ => return None,
    };
    Some(numbered(remote, hosts))
}

#[cfg(test)]
mod tests {
    use diagnosis::sockets::Row;

    use super::*;

    #[test]
    fn hosts_are_numbered_and_clients_have_no_address() {
        let line = |local: &str, remote: &str, state: &str| {
            format!("0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 0 0 7 1")
        };
        let (ports, mut hosts) = (HashSet::from([8080]), Vec::new());
        let mut told = |local, remote, state| {
            let row = Row::parse(&line(local, remote, state)).expect("a line of the table");
            peer(&row.socket(), &ports, &mut hosts)
        };
        let listens = told("0100007F:1F90", "00000000:0000", "0A");
        assert_eq!(listens.as_deref(), Some("port 8080"));
        let client = told("0100007F:1F90", "0700000A:D431", "01");
        assert_eq!(client.as_deref(), Some("a client of port 8080"));
        for (remote, expected) in [
            ("0700000A:1538", "peer-1:5432"),
            ("0800000A:1538", "peer-2:5432"),
            ("0700000A:18EB", "peer-1:6379"),
            ("0100007F:18EB", "127.0.0.1:6379"),
        ] {
            let found = told("0100000A:D431", remote, "01");
            assert_eq!(found.as_deref(), Some(expected));
        }
        assert_eq!(
            told("0100000A:D431", "0700000A:1538", "06"),
            None,
            "it has ended"
        );
    }
}
