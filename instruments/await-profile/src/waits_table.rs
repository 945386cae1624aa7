//! What is known of common waits: `waits.md`, which the documentation shows as it is.

use std::sync::LazyLock;

use crate::frame::Frame;
use crate::frame_kind::{FrameKind, is_within};

/// What kind of thing a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitKind {
    /// A lock, or what another request makes for all.
    Lock,
    /// A limit on how many may be at work at once.
    Limit,
    /// Room in a queue.
    Queue,
    /// Something that a pool lends.
    Pool,
    /// A connection, or another thing, that is being made.
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
    /// A time.
    Timer,
    /// The other end of a socket.
    Network,
    /// Another program.
    Process,
    /// Nothing: the request is being polled.
    Running,
    /// Nothing: the request is to be polled.
    Ready,
    /// The client of this service.
    Client,
}

const KINDS: [(&str, WaitKind); 20] = [
    ("lock", WaitKind::Lock),
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
    /// Its name in data, such as `new_connection`.
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

/// What is known of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Wait {
    /// What kind of thing is waited for.
    pub kind: WaitKind,
    /// What is waited for, in words. In brackets if it is a frame of the stack.
    pub what: &'static str,
    /// What that means, and what to do.
    pub advice: &'static str,
}

/// A line of the table.
pub(crate) struct Row {
    /// Each of these is a wait: frames in these modules, types or functions, from the outer one inwards.
    places: Vec<Vec<&'static str>>,
    pub(crate) wait: Wait,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("waits.md").lines().skip(2);
    lines.filter_map(row).collect()
});

fn row(line: &'static str) -> Option<Row> {
    let mut cells = line.trim_matches('|').split('|').map(str::trim);
    let (places, kind) = (cells.next()?, cells.next()?);
    let place = |path: &'static str| path.split(" > ").collect();
    Some(Row {
        // What stands between backticks.
        places: places.split('`').skip(1).step_by(2).map(place).collect(),
        wait: Wait {
            kind: KINDS.iter().find(|&&(name, _)| name == kind)?.1,
            what: cells.next()?,
            advice: cells.next()?,
        },
    })
}

impl Row {
    /// Whether the wait is shown as a frame of its own.
    pub(crate) fn is_frame(&self) -> bool {
        self.wait.what.starts_with('(')
    }

    /// Which of the frames is the outermost that belongs to such a wait.
    fn find(&self, frames: &[Frame]) -> Option<usize> {
        let first = |frames: &[Frame], path: &str| {
            let is_there = |frame: &Frame| is_within(&frame.path, std::iter::once(path));
            frames.iter().position(is_there)
        };
        self.places.iter().find_map(|place| {
            let (outermost, inner) = place.split_first()?;
            let at = first(frames, outermost)?;
            let mut rest = &frames[at + 1..];
            for path in inner {
                rest = &rest[first(rest, path)? + 1..];
            }
            Some(at)
        })
    }
}

/// The first line of the table that frames inside the reader's last one fit, and the outermost of
/// them that does.
pub(crate) fn row_of(stack: &[Frame]) -> Option<(&'static Row, usize)> {
    let own = stack.iter().rposition(|frame| frame.kind == FrameKind::Own);
    let inside = own.map_or(0, |own| own + 1);
    let mut rows = ROWS.iter();
    rows.find_map(|row| Some((row, inside + row.find(&stack[inside..])?)))
}

/// What is known of the wait at the end of this stack.
pub(crate) fn wait_of(stack: &[Frame]) -> Option<Wait> {
    let leaf = stack.last()?;
    if leaf.kind == FrameKind::Remark {
        let mut rows = ROWS.iter();
        return rows
            .find(|row| row.wait.what == leaf.path)
            .map(|row| row.wait);
    }
    row_of(stack).map(|(row, _)| row.wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read_and_no_other_hides_it() {
        assert_eq!(ROWS.len(), include_str!("waits.md").lines().count() - 2);
        for row in ROWS.iter() {
            for place in &row.places {
                let frame = |path: &&str| Frame::text(path, FrameKind::Library);
                let stack: Vec<_> = place.iter().map(frame).collect();
                assert_eq!(wait_of(&stack), Some(row.wait), "{place:?}");
            }
            if row.is_frame() {
                let shown = Frame::text(row.wait.what, FrameKind::Remark);
                assert_eq!(wait_of(&[shown]).unwrap().kind, row.wait.kind);
            }
        }
    }
}
