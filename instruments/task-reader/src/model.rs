//! A snapshot of a process: tasks, their stacks, what they wait for and what they hold.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use crate::runtime::Flavor;
use crate::types::Line;

/// All tasks of a process at one moment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Number of the process.
    pub pid: u32,
    /// Number of snapshots that were taken, of which this is the last.
    pub snapshots: u32,
    /// Time from the first of them to this.
    pub over: Duration,
    /// Runtimes of the process, in which a thread was.
    pub runtimes: Vec<Flavor>,
    /// Futures in `block_on`, then tasks by runtime and in the order of their lists.
    pub tasks: Vec<Task>,
    /// Locks, channels and the like that tasks wait for, those with the most waiters first.
    pub resources: Vec<Resource>,
    /// Tasks that wait for each other in a circle.
    pub circles: Vec<Circle>,
    /// Parts that could not be read, in sentences.
    pub not_seen: Vec<String>,
    /// Time for which the process stood still.
    pub standstill: Standstill,
}

/// Time for which a process stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Standstill {
    /// Longest stop.
    pub longest: Duration,
    /// Number of stops.
    pub stops: u32,
    /// Bytes that were copied in the last of them.
    pub bytes: usize,
}

/// A task.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Task {
    /// Tokio's number of the task, which is never used twice; 0 if it could not be read, or in `block_on`.
    pub id: u64,
    /// Number of its runtime, as an index of [`Snapshot::runtimes`].
    pub runtime: usize,
    /// State in the runtime.
    pub state: State,
    /// Number of the last snapshots in a row in which it waited at the same lines: 0 unless it waits.
    pub stayed: u32,
    /// Number of the thread that polls it.
    pub thread: Option<i32>,
    /// True for a future that its thread polls in `block_on`: it is in no list, and nobody has spawned it.
    pub in_block_on: bool,
    /// Its future.
    pub future: String,
    /// Line with which the source of its future begins, for an `async fn` or block.
    pub begins: Option<Line>,
    /// Line that spawned it, where tokio notes it: in programs that are built with `--cfg tokio_unstable`.
    pub spawned_at: Option<Line>,
    /// Time since it was woken, for a task that is ready, where tokio notes it: if it is built with `--cfg tokio_unstable`, and
    /// its runtime with `track_task_schedule_latency`.
    pub ready_for: Option<Duration>,
    /// Futures from the outermost inwards; for a running task, functions on its thread's stack.
    pub frames: Vec<Frame>,
    /// Things that it waits for: several, if it polls several futures.
    pub waits: Vec<Wait>,
    /// Values that it may hold.
    pub holds: Vec<Hold>,
    /// Containers of other tasks' handles that it has, or had in a variable that is no longer used.
    pub sets: Vec<TaskSet>,
    /// Parts of it that could not be read, in phrases.
    pub not_seen: Vec<String>,
    /// The `async fn` or block in it that receives datagrams, at the line of that await, whether or not it waits there now.
    #[serde(skip)]
    pub(crate) receives: Option<Frame>,
    /// Address of its header, by which others know it.
    #[serde(skip)]
    pub(crate) address: u64,
    /// Memory of its futures.
    #[serde(skip)]
    pub(crate) memory: Vec<Range<u64>>,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Suspended until something wakes it.
    Waiting,
    /// Woken, and not yet polled.
    Ready,
    /// Polled by a thread at this moment: its futures cannot be read, but the thread's stack.
    Running,
    /// Over. Somebody keeps its handle and has not taken its result.
    Finished,
    /// Its state cannot be read.
    Unknown,
}

/// A future in a task's stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Frame {
    /// Number of futures around it in this task. Frames of the same depth under one frame are polled together.
    pub depth: usize,
    /// The `async fn`, block or type.
    pub future: String,
    /// Line of the `.await` at which it is suspended. For a statement of several lines, this may be its first one.
    pub line: Option<Line>,
    /// Line with which it begins, if the await is in another file: that of a macro.
    pub begins: Option<Line>,
    /// Stage of the future.
    pub stage: Stage,
}

/// Stage of a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// An `async fn` or block that was not polled yet; the line is its first.
    NotBegun,
    /// An `async fn` or block, suspended at an `.await`.
    Suspended,
    /// An `async fn` or block that is over, kept by what polled it.
    Over,
    /// A future that is no `async fn`.
    HandWritten,
    /// It could not be read.
    Unreadable,
    /// A function on the stack of the thread that polls the task at this moment; the line is the one that it is at.
    Called,
}

/// Something that a task waits for.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Wait {
    /// Index of the innermost frame.
    pub frame: usize,
    /// Word for programs, such as `lock`; `unknown` for a future that the tables do not have.
    pub kind: &'static str,
    /// Kind of the wait, as a phrase.
    pub waits_for: String,
    /// Line of the program's own code, or of the crate that is the nearest to it, that waits.
    pub line: Option<Line>,
    /// Other end of its socket, or the port at which it listens. Hosts other than this machine are numbered, anew in each
    /// snapshot, and a client has no address.
    pub peer: Option<String>,
    /// Index in [`Snapshot::resources`].
    pub resource: Option<usize>,
    /// It was given what it waits for, and was not polled since.
    pub is_given: bool,
    /// Amount of the resource that it was given already, such as permits.
    #[serde(skip)]
    pub(crate) has: u64,
    /// Descriptor of its socket.
    #[serde(skip)]
    pub(crate) descriptor: Option<u64>,
    /// Address of the resource.
    #[serde(skip)]
    pub(crate) address: Option<u64>,
}

/// A value that may hold a resource.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Hold {
    /// Index of the frame that keeps it; none if its future is kept by a frame and not awaited.
    pub frame: Option<usize>,
    /// Kind of the held value, as a phrase.
    pub holds: &'static str,
    /// Variable or field.
    pub variable: String,
    /// Type, without the paths of modules.
    pub type_name: String,
    /// Line at which its future is suspended.
    pub line: Option<Line>,
    /// Index in [`Snapshot::resources`].
    pub resource: Option<usize>,
    /// Certainty that it holds the resource.
    pub certainty: Certainty,
    /// Address of the resource.
    #[serde(skip)]
    pub(crate) address: u64,
    /// Address of the value.
    #[serde(skip)]
    pub(crate) value: u64,
    /// Number of such values that the resource has out, if it says so.
    #[serde(skip)]
    pub(crate) out: Option<u64>,
    /// Permits that it holds of a semaphore, and those that the semaphore has left.
    #[serde(skip)]
    pub(crate) permits: Option<(u64, u64)>,
    /// True if its future drops it when it ends now; none if that is not known.
    #[serde(skip)]
    pub(crate) is_dropped: Option<bool>,
}

/// A container of handles of tasks, such as a `JoinSet`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TaskSet {
    /// Index of the frame that keeps it; none if its future is kept by a frame and not awaited.
    pub frame: Option<usize>,
    /// Variable or field.
    pub variable: String,
    /// Type, without the paths of modules.
    pub type_name: String,
    /// Number of tasks, with those that have ended and were not joined.
    pub tasks: u64,
}

/// Certainty that a value holds what its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Certainty {
    /// It is alive: its future would drop it now. The resource's state agrees.
    Agreed,
    /// Nothing says whether it is alive, and the resource's state agrees.
    Possible,
    /// The resource's state contradicts, or of several values some may not be alive.
    Doubtful,
}

/// Something that tasks wait for.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// Kind of its waiters' wait, as a phrase.
    pub waits_for: String,
    /// Tasks that wait, as indices of [`Snapshot::tasks`].
    pub waiters: Vec<usize>,
    /// Tasks that hold it, with the index in [`Task::holds`], unless all are doubtful.
    pub holders: Vec<(usize, usize)>,
    /// The task that it is, for a wait for a task's end.
    pub task: Option<usize>,
    /// True if all holders are known.
    pub is_complete: bool,
    /// Tasks from the first holder on, as indices of [`Snapshot::tasks`]: each waits for what the next one holds. The last one
    /// waits for something else, does not wait, or is in a circle.
    pub chain: Vec<usize>,
    #[serde(skip)]
    pub(crate) address: u64,
}

/// Tasks that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Circle {
    /// Tasks, as indices of [`Snapshot::tasks`]: each waits for the next, and the last for the first.
    pub tasks: Vec<usize>,
    /// The resource for which each waits.
    pub resources: Vec<usize>,
    /// True if all holders of these resources are known, so that nothing else can end the wait.
    pub is_certain: bool,
}
