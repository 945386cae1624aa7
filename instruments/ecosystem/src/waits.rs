//! Well-known waits.

use std::sync::LazyLock;

use crate::names::is_within;
use crate::tables::rows;

/// Beginning of the name under which the body of a route's responses is profiled; the route follows.
pub const BODY_OF: &str = "body of ";

/// Kind of thing that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitKind {
    /// A lock.
    Lock,
    /// A result that one request computes for all that wait for it.
    SingleFlight,
    /// A limit on how many requests may work at once.
    Limit,
    /// Room in a queue.
    Queue,
    /// An object that a pool lends.
    Pool,
    /// A connection, or another object, that is being made.
    NewConnection,
    /// Another service, which has the request.
    Answer,
    /// Another service, or a queue in the client: they cannot be told apart.
    AnswerOrStream,
    /// The rest of a request or of an answer.
    Body,
    /// A database, which has the statement.
    Database,
    /// A thread for blocking work, or that work: they cannot be told apart.
    BlockingPool,
    /// A task that was spawned.
    Task,
    /// Futures that are polled together.
    Set,
    /// A message.
    Channel,
    /// A notification.
    Notification,
    /// A point in time: a timer or a sleep.
    Timer,
    /// The other end of a socket.
    Network,
    /// Another program.
    Process,
    /// Nothing: the request is running, since a thread polls it.
    Running,
    /// Nothing: the request was woken, and waits for a thread to poll it.
    Ready,
    /// The client of this service.
    Client,
}

const KINDS: [(&str, WaitKind); 21] = [
    ("lock", WaitKind::Lock),
    ("single_flight", WaitKind::SingleFlight),
    ("limit", WaitKind::Limit),
    ("queue", WaitKind::Queue),
    ("pool", WaitKind::Pool),
    ("new_connection", WaitKind::NewConnection),
    ("answer", WaitKind::Answer),
    ("answer_or_stream", WaitKind::AnswerOrStream),
    ("body", WaitKind::Body),
    ("database", WaitKind::Database),
    ("blocking_pool", WaitKind::BlockingPool),
    ("task", WaitKind::Task),
    ("set", WaitKind::Set),
    ("channel", WaitKind::Channel),
    ("notification", WaitKind::Notification),
    ("timer", WaitKind::Timer),
    ("network", WaitKind::Network),
    ("process", WaitKind::Process),
    ("running", WaitKind::Running),
    ("ready", WaitKind::Ready),
    ("client", WaitKind::Client),
];

impl WaitKind {
    /// Returns the kind with this name in data.
    pub fn named(name: &str) -> Option<Self> {
        let mut kinds = KINDS.iter();
        kinds
            .find(|(other, _)| *other == name)
            .map(|(_, kind)| *kind)
    }

    /// Returns its name in data, such as `new_connection`.
    pub fn name(self) -> &'static str {
        let mut kinds = KINDS.iter();
        kinds
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for WaitKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A well-known wait: its kind, its name, and advice. As data it is kind and name; it is read by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Wait {
    /// Kind of the thing that is waited for.
    pub kind: WaitKind,
    /// Name of the thing that is waited for, in brackets if it is shown as a frame of the stack.
    pub what: &'static str,
    /// The usual cause, as a sentence; empty if it says no more than the wait.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub cause: &'static str,
    /// Remedy, as a sentence; empty if none is known.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub fix: &'static str,
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Wait {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Named {
            Name(String),
            Wait { what: String },
        }
        let (Named::Name(what) | Named::Wait { what }) = Named::deserialize(deserializer)?;
        match wait_named(&what) {
            Some(wait) => Ok(wait),
            None => Err(serde::de::Error::custom(format!(
                "no wait is called \"{what}\""
            ))),
        }
    }
}

/// Names of waits by which rules tell them apart, as in the table.
const TRANSACTION: &str = "(waiting for a transaction to begin, commit or roll back)";
const ANSWER_OF_SQLITE: &str = "an answer of SQLite";
const CLIENT_THAT_CONNECTS: &str = "a client that connects";
const ANSWER_OF_TASK: &str = "an answer of another task";

impl Wait {
    /// Returns the usual cause and the remedy, in one paragraph.
    pub fn advice(&self) -> String {
        format!("{} {}", self.cause, self.fix).trim().to_owned()
    }

    /// Returns the wait in words: `waiting for a lock`.
    pub fn in_words(&self) -> String {
        match self.what.strip_prefix('(') {
            Some(what) => what.trim_end_matches(')').to_owned(),
            None => format!("waiting for {}", self.what),
        }
    }

    /// Returns the thing that is waited for, without brackets: `a lock`.
    pub fn thing(&self) -> &'static str {
        let what = self.what.trim_matches(['(', ')']);
        what.trim_start_matches("waiting for ")
    }

    /// Returns whether something else answers, so that a request could ask for several answers at once.
    pub fn is_asked_for(&self) -> bool {
        use WaitKind::{Answer, AnswerOrStream, BlockingPool, Database, Lock, NewConnection, Pool};
        let is_kind = matches!(
            self.kind,
            Answer | AnswerOrStream | BlockingPool | Database | Lock | NewConnection | Pool
        );
        is_kind && !self.is_transaction()
    }

    /// Returns whether a transaction begins or ends, which is polled several times and is one wait.
    pub fn is_transaction(&self) -> bool {
        self.what == TRANSACTION
    }

    /// Returns whether `SQLite` has a statement.
    pub fn is_of_sqlite(&self) -> bool {
        self.what == ANSWER_OF_SQLITE
    }

    /// Returns whether a listener waits for its next client.
    pub fn is_of_listener(&self) -> bool {
        self.what == CLIENT_THAT_CONNECTS
    }

    /// Returns whether another task answers.
    pub fn is_answer_of_task(&self) -> bool {
        self.what == ANSWER_OF_TASK
    }
}

/// A row of the table of waits.
#[derive(Debug)]
pub struct WaitRow {
    /// Places that are this wait, each as modules, types or functions on the stack, from the outer one inwards.
    pub places: Vec<Vec<&'static str>>,
    /// Kind, name and advice of the wait.
    pub wait: Wait,
}

impl WaitRow {
    /// Returns whether the wait is shown as a frame of its own.
    pub fn is_frame(&self) -> bool {
        self.wait.what.starts_with('(')
    }

    /// Returns the position of the outermost of these frames that belong to the wait.
    fn position_in(&self, paths: &[&str]) -> Option<usize> {
        for place in &self.places {
            if let Some(at) = outermost(place, paths) {
                return Some(at);
            }
        }
        None
    }
}

/// Returns the position of the first frame of `place`, if the others lie further inwards in order.
fn outermost(place: &[&str], paths: &[&str]) -> Option<usize> {
    let mut first = None;
    let mut from = 0;
    for module in place {
        let is_there = |path: &&str| is_within(path, std::iter::once(*module));
        let at = from + paths[from..].iter().position(is_there)?;
        first = first.or(Some(at));
        from = at + 1;
    }
    first
}

static WAITS: LazyLock<Vec<WaitRow>> = LazyLock::new(|| {
    rows("Waits")
        .iter()
        .filter_map(|row| wait_row(row))
        .collect()
});

/// Returns all well-known waits; if several fit, the first one counts.
pub fn waits() -> &'static [WaitRow] {
    &WAITS
}

/// Returns the first row of the table that fits these frames, the outer one first, and the position of its outermost
/// frame.
pub fn wait_in(paths: &[&str]) -> Option<(&'static WaitRow, usize)> {
    for row in waits() {
        if let Some(at) = row.position_in(paths) {
            return Some((row, at));
        }
    }
    None
}

/// Returns the well-known wait with this name ([`Wait::what`]).
pub fn wait_named(what: &str) -> Option<Wait> {
    let row = waits().iter().find(|row| row.wait.what == what)?;
    Some(row.wait)
}

fn wait_row(cells: &[&'static str]) -> Option<WaitRow> {
    let [places, kind, what, cause, fix] = cells else {
        return None;
    };
    let kind = WaitKind::named(kind)?;
    // A state of a request has a dash in place of a name.
    let names = places.split('`').skip(1).step_by(2);
    let mut all = Vec::new();
    for place in names.filter(|name| *name != "–") {
        all.push(place.split(" > ").collect());
    }
    Some(WaitRow {
        places: all,
        wait: Wait {
            kind,
            what,
            cause: cause.trim_matches('–'),
            fix: fix.trim_matches('–'),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        assert_eq!(waits().len(), rows("Waits").len());
        assert!(waits().len() > 30);
        for name in [TRANSACTION, ANSWER_OF_SQLITE, ANSWER_OF_TASK] {
            assert!(wait_named(name).is_some(), "{name}");
        }
        for row in waits() {
            assert_eq!(
                wait_named(row.wait.what),
                Some(row.wait),
                "two waits have a name"
            );
        }
        for (name, kind) in KINDS {
            let is_this = |row: &&WaitRow| row.wait.kind == kind;
            assert!(waits().iter().any(|row| is_this(&row)), "{name}");
        }
    }
}
