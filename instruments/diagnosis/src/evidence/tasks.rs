//! Tasks of a process in several snapshots: what they wait for, and where these waits end.

use std::cmp::Ordering;
use std::fmt;

use ecosystem::{Frame, Line, Wait, WaitKind, wait_in};
use serde::{Deserialize, Serialize};

/// Tasks of a process, added up over several snapshots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tasks {
    /// Number of snapshots.
    pub snapshots: u32,
    /// Time from the first snapshot to the last, in seconds.
    pub seconds: f64,
    /// Tasks by their future, those with most tasks in the last snapshot first.
    pub spawned: Vec<Spawned>,
    /// Waits with the waits of their holders, the most frequent first.
    pub ways: Vec<Way>,
    /// Semaphores with permits that tasks hold.
    pub limits: Vec<Limit>,
    /// Containers of tasks' handles, those with most tasks first.
    pub sets: Vec<TaskSet>,
    /// Tasks in the last snapshot that wait for each other in a circle.
    pub circles: Vec<Circle>,
    /// Tasks whose code receives datagrams, by where they were, the most frequent places first.
    pub receivers: Vec<Receiver>,
}

/// Tasks whose code receives datagrams, at one of their places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Receiver {
    /// Line at which they receive, with its function.
    pub receives_at: String,
    /// True if they waited for datagrams.
    pub is_receiving: bool,
    /// Place, and what they waited for there.
    pub step: Step,
    /// Number of such tasks in all snapshots.
    pub seen: u64,
}

/// Tasks with one future.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spawned {
    /// The `async fn`, block or type.
    pub future: String,
    /// Line with which the source of the future begins: `src/relay.rs:20`.
    pub begins: Option<String>,
    /// Line that spawned it, in programs that are built with `--cfg tokio_unstable`.
    pub spawned_at: Option<String>,
    /// Number of such tasks in the first snapshot.
    pub first: usize,
    /// Number of such tasks in the last snapshot.
    pub last: usize,
}

impl Spawned {
    /// Returns the future with the line at which it is spawned, or at which it begins.
    pub(crate) fn label(&self) -> String {
        match self.spawned_at.as_ref().or(self.begins.as_ref()) {
            Some(line) => format!("{} ({line})", self.future),
            None => self.future.clone(),
        }
    }
}

/// A wait, and the waits of those that hold what is waited for, each for the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Way {
    /// Waits of this kind in all snapshots. A wait with several holders counts in parts.
    pub seen: f64,
    /// Different tasks at its end in all snapshots.
    pub ends: u64,
    /// First the wait itself, then that of its holder, and so on.
    pub steps: Vec<Step>,
}

/// A task at one of the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Future of the task.
    pub task: String,
    /// Line at which it is, with its function: `shop::read (src/read.rs:7)`; `None` if none of the service's own is known.
    pub at: Option<String>,
    /// Kind of its wait.
    pub kind: StepKind,
    /// Name of the thing that it waits for, as a phrase.
    pub waits_for: String,
    /// Functions of libraries inside of its line, from the outermost inwards.
    pub through: Vec<String>,
    /// The value by which it holds what the step before waits for: `guard`, a `MutexGuard<Limiter>`.
    pub holds: Option<String>,
}

/// Kind of the wait of a task at a step. As data it is a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "&'static str")]
pub enum StepKind {
    /// A kind of waits, or of not waiting: `lock`, `running`.
    Of(WaitKind),
    /// Nobody polls the future.
    Unpolled,
    /// The future never ends.
    Never,
    /// It is not known.
    #[default]
    Unknown,
}

impl StepKind {
    /// Returns the kind with this word.
    pub fn named(word: &str) -> Self {
        match word {
            "unpolled" => Self::Unpolled,
            "never" => Self::Never,
            _ => WaitKind::named(word).map_or(Self::Unknown, Self::Of),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Of(kind) => kind.name(),
            Self::Unpolled => "unpolled",
            Self::Never => "never",
            Self::Unknown => "unknown",
        }
    }
}

impl From<String> for StepKind {
    fn from(word: String) -> Self {
        Self::named(&word)
    }
}

impl From<StepKind> for &'static str {
    fn from(kind: StepKind) -> Self {
        kind.word()
    }
}

/// By their words.
impl Ord for StepKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.word().cmp(other.word())
    }
}

impl PartialOrd for StepKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Step {
    /// Returns the well-known wait of this step, by the libraries that it passes.
    pub(crate) fn wait(&self) -> Option<Wait> {
        let paths: Vec<&str> = self.through.iter().map(String::as_str).collect();
        Some(wait_in(&paths)?.0.wait)
    }

    /// Returns the line at which it is, if it is one of the service's own.
    pub(crate) fn line(&self) -> Option<Line> {
        self.frame().line().cloned()
    }

    /// Returns the frame of the line at which it is, or of its future if no line is known.
    pub(crate) fn frame(&self) -> Frame {
        let Ok(frame) = self.place().parse();
        frame
    }

    /// Returns the line at which it is, or its future if no line is known.
    pub(crate) fn place(&self) -> &str {
        self.at.as_deref().unwrap_or(&self.task)
    }
}

impl Way {
    /// Returns the wait at its beginning.
    pub(crate) fn first(&self) -> Option<&Step> {
        self.steps.first()
    }

    /// Returns the task at its end, if anybody is known to hold what is waited for.
    pub(crate) fn end(&self) -> Option<&Step> {
        match self.steps.as_slice() {
            [] | [_] => None,
            [.., last] => Some(last),
        }
    }
}

/// Semaphores of one size whose permits are held by the same kind of value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// Future that keeps the permits.
    pub kept_by: String,
    /// Innermost line of the service's own code in it, with its function.
    pub at: Option<String>,
    /// Permits of each semaphore.
    pub permits: u64,
    /// Number of semaphores with permits that are held, averaged over the snapshots.
    pub semaphores: f64,
    /// Number of permits that are held, averaged over the snapshots.
    pub held: f64,
    /// Number of semaphores without a permit left, averaged over the snapshots.
    pub full: f64,
}

/// Containers of tasks' handles in one variable, such as a `JoinSet`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSet {
    /// Future that keeps it.
    pub kept_by: String,
    /// Innermost line of the service's own code that keeps it, with its function.
    pub at: Option<String>,
    /// The variable with its type: `sessions`, a `JoinSet<Transcript>`.
    pub value: String,
    /// Number of its tasks in the first snapshot, with those that have ended.
    pub first: u64,
    /// Number of its tasks in the last snapshot.
    pub last: u64,
}

impl TaskSet {
    /// Returns the line at which it is kept, or the future if no line is known.
    pub(crate) fn place(&self) -> &str {
        self.at.as_deref().unwrap_or(&self.kept_by)
    }
}

/// Tasks that wait for each other in a circle.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Circle {
    /// True if nothing else can end it.
    pub is_certain: bool,
    /// Each waits for the next, and the last for the first.
    pub steps: Vec<Step>,
}

/// Most rows of each kind that the text has.
const MOST_LINES: usize = 10;

impl fmt::Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.spawned.iter().map(|spawned| spawned.last).sum();
        writeln!(
            f,
            "{all} tasks in the last of {} snapshots within {:.1} s",
            self.snapshots, self.seconds
        )?;
        for spawned in self.spawned.iter().take(MOST_LINES) {
            writeln!(f, "  {:>5} {}", spawned.last, spawned.label())?;
        }
        writeln!(
            f,
            "Waits in a snapshot, on average, and those of their holders"
        )?;
        for way in self.ways.iter().take(MOST_LINES) {
            let mut steps = Vec::new();
            for step in &way.steps {
                steps.push(format!("{} at {}", step.waits_for, step.place()));
            }
            let seen = way.seen / f64::from(self.snapshots.max(1));
            writeln!(f, "  {seen:>5.1} {}", steps.join(" > "))?;
        }
        for circle in &self.circles {
            let places: Vec<&str> = circle.steps.iter().map(Step::place).collect();
            writeln!(f, "In a circle: {}", places.join(" > "))?;
        }
        Ok(())
    }
}
