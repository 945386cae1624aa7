//! Evidence as a file, which can be judged again.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::Evidence;

/// Version of the format. A reader refuses all others, because they lack what its rules judge.
const VERSION: u32 = 1;

/// Addresses of other services in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Their ports; the hosts are numbered, except for this machine.
    Numbered,
    /// All of them.
    Kept,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    program: &'a str,
    system: &'a str,
    evidence: &'a Evidence,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
struct Read {
    evidence: Evidence,
}

/// Reason why a file is no evidence.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The file is of another version of the format.
    Version(u32),
    /// The file is something else, or damaged.
    Damaged(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "its evidence has version {version}, and this program reads version {VERSION}: use the version of the \
                 program that wrote it"
            ),
            Self::Damaged(why) => write!(f, "it is no evidence of a look ({why})"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Evidence {
    /// Returns the evidence as a file in JSON. It has names and numbers: functions, files and lines, routes, ports. It has
    /// no bodies, headers or arguments, and no client's address.
    ///
    /// # Panics
    ///
    /// Never: all of it can be written as JSON.
    pub fn to_file(&self, addresses: Addresses) -> String {
        let numbered = (addresses == Addresses::Numbered).then(|| self.numbered());
        let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        let written = Written {
            version: VERSION,
            program: concat!("diagnosis ", env!("CARGO_PKG_VERSION")),
            system: &system,
            evidence: numbered.as_ref().unwrap_or(self),
        };
        serde_json::to_string(&written).expect("evidence has names as keys")
    }

    /// Reads the evidence from a file that [`to_file`](Self::to_file) wrote.
    ///
    /// # Errors
    ///
    /// Fails if the file is of another version, or something else.
    pub fn from_file(text: &str) -> Result<Self, Unreadable> {
        let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
        let Version { version } = serde_json::from_str(text).map_err(damaged)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        let read: Read = serde_json::from_str(text).map_err(damaged)?;
        Ok(read.evidence)
    }

    /// Returns the evidence with numbers in place of the hosts of other services.
    fn numbered(&self) -> Self {
        let mut evidence = self.clone();
        let Some(connections) = &mut evidence.connections else {
            return evidence;
        };
        let upstreams = connections.upstreams.iter_mut();
        let datagrams = connections.datagrams.iter_mut();
        let addresses = upstreams
            .map(|peers| &mut peers.address)
            .chain(datagrams.map(|sockets| &mut sockets.address));
        let mut hosts = Vec::new();
        for text in addresses {
            // A port of this process is no address.
            if let Ok(address) = text.parse() {
                *text = numbered(address, &mut hosts);
            }
        }
        evidence
    }
}

/// Returns an address with the host's number in place of its address: `peer-1:5432`. This machine's own addresses stay. `hosts`
/// are those that have numbers.
pub fn numbered(address: SocketAddr, hosts: &mut Vec<IpAddr>) -> String {
    if address.ip().is_loopback() {
        return address.to_string();
    }
    let known = hosts.iter().position(|host| *host == address.ip());
    let at = known.unwrap_or(hosts.len());
    if known.is_none() {
        hosts.push(address.ip());
    }
    format!("peer-{}:{}", at + 1, address.port())
}

/// Data that several own is written as if it had one owner.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option)] // The signature is serde's.
    pub(in crate::evidence) fn serialize<T: Serialize, S: Serializer>(
        shared: &Option<Arc<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        shared.as_deref().serialize(serializer)
    }

    pub(in crate::evidence) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<T>>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Arc::new))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::{Connections, Datagrams, Descriptors, Peers};
    use crate::testing::{evidence, of_threads, place, route};
    use crate::threads::{CpuSamples, CpuThread, Stack, State, Thread};

    fn everything() -> Evidence {
        let line = "shop::read (src/read.rs:3)";
        let lock = place("GET /a", &[line, "tokio::sync::Mutex::lock"], 1.0);
        let mut all = evidence(&[route("GET /a", 2.0, 100)], &[lock]);
        let stack = Stack::of(9, State::Blocked, &["shop::save", "std::fs::File::open"]);
        let worker = Thread::of("tokio worker", vec![stack.calling("fsync")]);
        all.threads = of_threads(vec![worker], 0.0).threads;
        all.cpu = Some(Arc::new(CpuSamples {
            period_s: 0.01,
            threads: vec![CpuThread {
                is_runtime: true,
                stacks: vec![Stack::of(3, State::Running, &["shop::rank", "std::vec"])],
                ..CpuThread::default()
            }],
        }));
        all.descriptors = Some(Descriptors {
            limit: 10,
            most_open: 10,
            ..Descriptors::default()
        });
        let peers = |address: &str| Peers {
            address: address.to_owned(),
            most_open: 2,
            open: 2,
            ..Peers::default()
        };
        let sockets = |address: &str| Datagrams {
            address: address.to_owned(),
            dropped: 7,
            ..Datagrams::default()
        };
        all.connections = Some(Connections {
            upstreams: vec![
                peers("127.0.0.1:5432"),
                peers("[2001:db8::1]:443"),
                peers("10.0.0.7:6379"),
                peers("10.0.0.7:443"),
            ],
            listeners: vec![peers("8080")],
            datagrams: ["port 8125", "10.0.0.7:53", "127.0.0.1:53"]
                .map(sockets)
                .into(),
            ..Connections::default()
        });
        all
    }

    #[test]
    fn a_file_keeps_all_that_was_seen() {
        let seen = everything();
        let file = seen.to_file(Addresses::Kept);
        let read = Evidence::from_file(&file).unwrap();
        assert_eq!(format!("{read:?}"), format!("{seen:?}"));
    }

    #[test]
    fn a_file_names_no_host_unless_it_is_asked_to() {
        let numbered = everything().to_file(Addresses::Numbered);
        let read = Evidence::from_file(&numbered).unwrap();
        let addresses: Vec<&str> = read
            .upstreams()
            .iter()
            .map(|peers| peers.address.as_str())
            .collect();
        assert_eq!(
            addresses,
            ["127.0.0.1:5432", "peer-1:443", "peer-2:6379", "peer-2:443"]
        );
        let connections = read.connections.unwrap_or_default();
        let datagrams = connections.datagrams.iter();
        let datagrams: Vec<&str> = datagrams.map(|one| one.address.as_str()).collect();
        assert_eq!(datagrams, ["port 8125", "peer-2:53", "127.0.0.1:53"]);
        assert!(!numbered.contains("10.0.0.7") && !numbered.contains("2001:db8"));
    }

    #[test]
    fn what_is_no_evidence_is_refused_with_a_reason() {
        let file = Evidence::default().to_file(Addresses::Kept);
        let later = file.replacen("\"version\":1", "\"version\":99", 1);
        assert_eq!(
            Evidence::from_file(&later).unwrap_err(),
            Unreadable::Version(99)
        );
        for damaged in ["", "{}", "[1]", &file[..file.len() / 2]] {
            let why = Evidence::from_file(damaged).unwrap_err().to_string();
            assert!(why.contains("no evidence of a look"), "{damaged}: {why}");
        }
        let mut unknown = everything();
        let requests = unknown.requests.as_mut().unwrap();
        if let Some(wait) = &mut requests.places[0].wait {
            wait.what = "a wait of another version";
        }
        let why = Evidence::from_file(&unknown.to_file(Addresses::Kept)).unwrap_err();
        assert!(
            why.to_string().contains("a wait of another version"),
            "{why}"
        );
    }
}
