//! Well-known waits.

use std::sync::LazyLock;

use crate::names::is_within;
use crate::tables::rows;

/// Frame of a wake by a timer of the runtime.
pub const BY_TIMER: &str = "(a timer)";
/// Beginning of the name of the frame that all waits share when a request waits for several things at once.
pub const ONE_OF_SEVERAL: &str = "(one of ";
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

/// A well-known wait: its kind, its name, and advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Wait {
    /// Kind of the thing that is waited for.
    pub kind: WaitKind,
    /// Name of the thing that is waited for, in brackets if it is shown as a frame of the stack.
    pub what: &'static str,
    /// The usual cause, as sentences.
    pub cause: &'static str,
    /// Remedy, as sentences; a dash if none is known.
    pub fix: &'static str,
}

impl Wait {
    /// Returns the usual cause and the remedy, in one paragraph.
    pub fn advice(&self) -> String {
        match self.fix {
            "–" => self.cause.to_owned(),
            fix => format!("{} {fix}", self.cause),
        }
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
    let (_, kind) = KINDS.iter().find(|(name, _)| name == kind)?;
    // A state of a request has a dash in place of a name.
    let names = places.split('`').skip(1).step_by(2);
    let mut all = Vec::new();
    for place in names.filter(|name| *name != "–") {
        all.push(place.split(" > ").collect());
    }
    Some(WaitRow {
        places: all,
        wait: Wait {
            kind: *kind,
            what,
            cause,
            fix,
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
        for (name, kind) in KINDS {
            let is_this = |row: &&WaitRow| row.wait.kind == kind;
            assert!(waits().iter().any(|row| is_this(&row)), "{name}");
        }
    }
}
