//! A snapshot in the form in which it is shown: tasks with equal stacks together, then who waits for whom.
//!
//! Text, JSON, the page and the picture all show this and nothing else.

use std::collections::HashMap;

use ecosystem::PathMeaning;
use serde::Serialize;

use crate::model::{Certainty, Circle, Frame, Hold, Resource, Snapshot, Stage, State, Task, Wait};
use crate::runtime::Flavor;
use crate::types::Line;

/// Version of the report as JSON. It grows with a change that readers have to know; further keys are none.
pub const VERSION: u32 = 1;

/// Most resources that are listed.
const MOST_RESOURCES: usize = 20;

/// Most lines at which the waiters of a resource are listed.
const MOST_LINES: usize = 3;

/// Tasks of a process, grouped.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Number of the process.
    pub pid: u32,
    /// Snapshots that were taken; the report shows the last.
    pub snapshots: u32,
    /// Time from the first snapshot to the last.
    pub seconds: f64,
    /// Runtimes of the process, in which a thread was.
    pub runtimes: Vec<Flavor>,
    /// Number of all tasks, without futures in `block_on`.
    pub tasks: usize,
    /// Part of a function's name that the shown tasks have in their stacks, if others are left out.
    pub of: Option<String>,
    /// Tasks with equal stacks, the largest group first.
    pub groups: Vec<Group>,
    /// Locks, channels and tasks that tasks wait for and whose holders are known, those with the most waiters first.
    pub resources: Vec<Wanted>,
    /// Tasks that wait for each other in a circle.
    pub circles: Vec<Deadlock>,
    /// Parts that could not be read, in sentences.
    pub not_seen: Vec<String>,
    /// Longest time for which the process stood still, in milliseconds.
    pub longest_stop_ms: f64,
    /// Number of stops.
    pub stops: u32,
}

/// Tasks with equal stacks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// Number of tasks.
    pub count: usize,
    /// Number of those that waited at the same lines in all snapshots.
    pub stayed: usize,
    /// State in the runtime.
    pub state: State,
    /// True if they serve connections, whose requests are in their stacks, or accept them.
    pub serves: bool,
    /// True for tasks of `debug-endpoints` itself, which no line of the service has spawned.
    pub of_endpoints: bool,
    /// True for futures that their threads poll in `block_on`: they are no tasks, and have no numbers.
    pub in_block_on: bool,
    /// Future of the task.
    pub future: String,
    /// Line with which the source of the future begins, for an `async fn` or block.
    pub begins: Option<Line>,
    /// Lines that spawned them, where tokio notes it; none if there are more than a few.
    pub spawned_at: Vec<Line>,
    /// Longest time in seconds since one of them was woken, for tasks that are ready, where tokio notes it.
    pub ready_for: Option<f64>,
    /// Futures from the outermost inwards.
    pub stack: Vec<Level>,
    /// Tokio's numbers of the tasks.
    pub ids: Vec<u64>,
    /// Threads that poll them.
    pub threads: Vec<i32>,
    /// Parts that could not be read, in phrases.
    pub not_seen: Vec<String>,
}

/// A future in a stack.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// The future and its line.
    #[serde(flatten)]
    pub frame: Frame,
    /// Number of futures around it that poll several.
    pub indent: usize,
    /// Kinds of its waits, if it is an innermost future.
    pub waits: Vec<WaitsFor>,
    /// Values in it that hold something.
    pub holds: Vec<Holds>,
}

/// Something that the first task of a group waits for.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WaitsFor {
    /// Word for programs, such as `lock`; `unknown` for a future that the tables do not have.
    pub kind: &'static str,
    /// The same as a phrase.
    pub waits_for: String,
    /// Other end of the socket, or the port at which it listens, if that is the same for all tasks of the group.
    pub peer: Option<String>,
    /// It was given what it waits for, and was not polled since.
    pub is_given: bool,
}

/// A value that holds something, by its name and type.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Holds {
    /// Kind of the held value, as a phrase.
    pub holds: &'static str,
    /// Variable or field.
    pub variable: String,
    /// Type, without the paths of modules.
    pub type_name: String,
    /// True if the resource agrees that it is held.
    pub is_certain: bool,
}

/// A task by its number and future.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TaskRef {
    /// Tokio's number; 0 for a future in `block_on`.
    pub id: u64,
    /// Thread that polls it: always known in `block_on`.
    pub thread: Option<i32>,
    /// True for a future that its thread polls in `block_on`.
    pub in_block_on: bool,
    /// Its future.
    pub future: String,
    /// State in the runtime.
    pub state: State,
    /// Number of the last snapshots in a row in which it waited at the same lines: 0 unless it waits.
    pub stayed: u32,
    /// The first things that it waits for itself, as phrases.
    pub waits_for: Vec<String>,
}

/// A resource that tasks wait for, with those that hold it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Wanted {
    /// Kind of the wait, as a phrase.
    pub waits_for: String,
    /// Number of tasks that wait.
    pub waiters: usize,
    /// Number of those that waited at the same lines in all snapshots.
    pub stayed: usize,
    /// Lines at which they wait; none if there are more than a few.
    pub lines: Vec<Line>,
    /// Tasks that hold it.
    pub holders: Vec<Holder>,
    /// The task that it is, for a wait for a task's end.
    pub task: Option<TaskRef>,
    /// True if all holders are known.
    pub is_complete: bool,
    /// Tasks from the first holder on: each waits for what the next one holds.
    pub chain: Vec<TaskRef>,
}

/// A task that holds a resource.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Holder {
    /// The task.
    pub task: TaskRef,
    /// The value by which it holds it.
    pub value: Holds,
    /// Line at which the value's future is suspended.
    pub line: Option<Line>,
    /// True if that future is kept and not polled.
    pub is_aside: bool,
}

/// Tasks that wait for each other in a circle.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Deadlock {
    /// True if nothing else can end it.
    pub is_certain: bool,
    /// Each waits for the next, and the last for the first.
    pub links: Vec<Link>,
}

/// A task in a circle.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Link {
    /// The task.
    pub task: TaskRef,
    /// Kind of its wait, as a phrase.
    pub waits_for: String,
    /// Line of the wait.
    pub line: Option<Line>,
    /// Tasks that hold what it waits for.
    pub held_by: Vec<Holder>,
}

impl Report {
    /// Groups the tasks of a snapshot: all, or those with `of` in the name of a future of their stack.
    pub fn new(snapshot: &Snapshot, of: Option<&str>) -> Self {
        let of = of.filter(|of| !of.is_empty());
        let is_shown = |number: &usize| {
            let task = snapshot.tasks.get(*number);
            task.is_some_and(|task| of.is_none_or(|of| has(task, of)))
        };
        let mut groups = Vec::new();
        for numbers in snapshot.groups() {
            let tasks = numbers.iter();
            let tasks: Vec<&Task> = tasks
                .filter_map(|number| snapshot.tasks.get(*number))
                .collect();
            let group = Group::new(&tasks, snapshot.snapshots);
            groups.extend(group.filter(|_| numbers.first().is_some_and(is_shown)));
        }
        let mut resources = Vec::new();
        for resource in &snapshot.resources {
            let holders = resource.holders.iter().map(|(task, _)| task);
            let concerned = resource.waiters.iter().chain(holders).chain(&resource.task);
            let is_known = !resource.holders.is_empty() || resource.task.is_some();
            if is_known && concerned.copied().any(|number| is_shown(&number)) {
                resources.push(Wanted::new(snapshot, resource));
            }
            if resources.len() == MOST_RESOURCES {
                break;
            }
        }
        let circles = snapshot.circles.iter();
        let circles = circles.filter(|circle| circle.tasks.iter().any(is_shown));
        Self {
            version: VERSION,
            pid: snapshot.pid,
            snapshots: snapshot.snapshots,
            seconds: snapshot.over.as_secs_f64(),
            runtimes: snapshot.runtimes.clone(),
            tasks: snapshot
                .tasks
                .iter()
                .filter(|task| !task.in_block_on)
                .count(),
            of: of.map(str::to_owned),
            groups,
            resources,
            circles: circles
                .map(|circle| Deadlock::new(snapshot, circle))
                .collect(),
            not_seen: snapshot.not_seen.clone(),
            longest_stop_ms: snapshot.standstill.longest.as_secs_f64() * 1e3,
            stops: snapshot.standstill.stops,
        }
    }
}

/// Returns whether a future of a task has `part` in its name.
fn has(task: &Task, part: &str) -> bool {
    let mut futures = task.frames.iter().map(|frame| &frame.future);
    task.future.contains(part) || futures.any(|future| future.contains(part))
}

impl Group {
    fn new(tasks: &[&Task], snapshots: u32) -> Option<Self> {
        let first = tasks.first()?;
        let stayed = tasks.iter().filter(|task| task.stayed == snapshots);
        Some(Self {
            count: tasks.len(),
            stayed: stayed.count(),
            state: first.state,
            serves: serves(first),
            of_endpoints: is_of_endpoints(first),
            in_block_on: first.in_block_on,
            future: first.future.clone(),
            begins: first.begins.clone(),
            spawned_at: spawned_at(tasks),
            ready_for: tasks
                .iter()
                .filter_map(|task| task.ready_for)
                .max()
                .map(|longest| longest.as_secs_f64()),
            stack: stack(tasks, first),
            ids: tasks
                .iter()
                .filter(|task| !task.in_block_on)
                .map(|task| task.id)
                .collect(),
            threads: tasks.iter().filter_map(|task| task.thread).collect(),
            not_seen: first.not_seen.clone(),
        })
    }
}

/// Returns whether a server's code is in the stack of a task.
fn serves(task: &Task) -> bool {
    let mut futures = task.frames.iter().map(|frame| &frame.future);
    let is_server =
        |name: &String| PathMeaning::Server.fits(path(name.trim_start_matches(['<', '&'])));
    is_server(&task.future) || futures.any(is_server)
}

/// Returns whether a task is one of the debug endpoints' own. A task that the service has put into `watch` is not: its
/// future is of another crate.
fn is_of_endpoints(task: &Task) -> bool {
    path(task.future.trim_start_matches(['<', '&'])).starts_with("debug_endpoints::")
}

/// Returns a name without type parameters at its end.
fn path(name: &str) -> &str {
    name.split(['<', ' ']).next().unwrap_or(name)
}

/// Returns the lines that spawned tasks, if they are few.
fn spawned_at(tasks: &[&Task]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in tasks.iter().filter_map(|task| task.spawned_at.as_ref()) {
        if !lines.contains(line) {
            lines.push(line.clone());
        }
        if lines.len() > MOST_LINES {
            return Vec::new();
        }
    }
    lines
}

/// Returns the stack that tasks have in common, with what the first of them waits for and holds.
fn stack(tasks: &[&Task], task: &Task) -> Vec<Level> {
    let mut indents: Vec<usize> = Vec::new();
    let mut stack = Vec::new();
    for (number, frame) in task.frames.iter().enumerate() {
        let above = frame.depth.checked_sub(1).and_then(|at| indents.get(at));
        let above = above.copied().unwrap_or_default();
        indents.truncate(frame.depth);
        // Frames are indented only where a future polls several.
        let indent = above + usize::from(siblings(&task.frames, number) > 1);
        indents.push(indent);
        let mut waits = Vec::new();
        for (at, wait) in task.waits.iter().enumerate() {
            if wait.frame == number {
                let is_common = |other: &&Task| {
                    let other = other.waits.get(at).map(|wait| &wait.peer);
                    other == Some(&wait.peer)
                };
                let mut waits_for = WaitsFor::new(wait);
                waits_for.peer = waits_for.peer.filter(|_| tasks.iter().all(is_common));
                waits.push(waits_for);
            }
        }
        let holds = task
            .holds
            .iter()
            .filter(|hold| hold.frame == Some(number) && hold.certainty != Certainty::Doubtful);
        stack.push(Level {
            frame: frame.clone(),
            indent,
            waits,
            holds: holds.map(Holds::new).collect(),
        });
    }
    stack
}

/// Returns how many futures the frame around this one polls.
fn siblings(frames: &[Frame], number: usize) -> usize {
    let Some(depth) = frames.get(number).map(|frame| frame.depth) else {
        return 0;
    };
    let before = frames.iter().take(number).rev();
    let before = before.take_while(|frame| frame.depth >= depth);
    let after = frames.iter().skip(number);
    let after = after.take_while(|frame| frame.depth >= depth);
    // The frame itself is the first of those after.
    before
        .chain(after)
        .filter(|frame| frame.depth == depth)
        .count()
}

impl WaitsFor {
    fn new(wait: &Wait) -> Self {
        Self {
            kind: wait.kind,
            waits_for: wait.waits_for.clone(),
            peer: wait.peer.clone(),
            is_given: wait.is_given,
        }
    }
}

impl Holds {
    fn new(hold: &Hold) -> Self {
        Self {
            holds: hold.holds,
            variable: hold.variable.clone(),
            type_name: hold.type_name.clone(),
            is_certain: hold.certainty == Certainty::Agreed,
        }
    }
}

impl TaskRef {
    fn new(task: &Task) -> Self {
        Self {
            id: task.id,
            thread: task.thread,
            in_block_on: task.in_block_on,
            future: task.future.clone(),
            state: task.state,
            stayed: task.stayed,
            waits_for: task
                .waits
                .iter()
                .map(|wait| WaitsFor::new(wait).phrase())
                .collect(),
        }
    }
}

impl Wanted {
    fn new(snapshot: &Snapshot, resource: &Resource) -> Self {
        let waiters = resource.waiters.iter();
        let waiters = waiters.filter_map(|number| snapshot.tasks.get(*number));
        Self {
            waits_for: resource.waits_for.clone(),
            waiters: resource.waiters.len(),
            stayed: waiters
                .filter(|task| task.stayed == snapshot.snapshots)
                .count(),
            lines: lines(snapshot, resource),
            holders: holders(snapshot, resource),
            task: resource
                .task
                .and_then(|number| snapshot.tasks.get(number))
                .map(TaskRef::new),
            is_complete: resource.is_complete,
            chain: resource
                .chain
                .iter()
                .filter_map(|number| snapshot.tasks.get(*number))
                .map(TaskRef::new)
                .collect(),
        }
    }
}

/// Returns the lines at which the waiters of a resource wait, if they are few.
fn lines(snapshot: &Snapshot, resource: &Resource) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for number in &resource.waiters {
        let waits = snapshot
            .tasks
            .get(*number)
            .map_or(&[][..], |task| &task.waits);
        let wait = waits
            .iter()
            .find(|wait| wait.address == Some(resource.address));
        let Some(line) = wait.and_then(|wait| wait.line.as_ref()) else {
            return Vec::new();
        };
        if !lines.contains(line) {
            lines.push(line.clone());
        }
        if lines.len() > MOST_LINES {
            return Vec::new();
        }
    }
    lines
}

fn holders(snapshot: &Snapshot, resource: &Resource) -> Vec<Holder> {
    let mut holders = Vec::new();
    for (number, at) in &resource.holders {
        let Some(task) = snapshot.tasks.get(*number) else {
            continue;
        };
        if let Some(hold) = task.holds.get(*at) {
            holders.push(Holder {
                task: TaskRef::new(task),
                value: Holds::new(hold),
                line: hold.line.clone(),
                is_aside: hold.frame.is_none(),
            });
        }
    }
    holders
}

impl Deadlock {
    fn new(snapshot: &Snapshot, circle: &Circle) -> Self {
        let mut links = Vec::new();
        for (number, place) in circle.tasks.iter().zip(&circle.resources) {
            let task = snapshot.tasks.get(*number);
            if let (Some(task), Some(resource)) = (task, snapshot.resources.get(*place)) {
                let wait = task.waits.iter().find(|wait| wait.resource == Some(*place));
                links.push(Link {
                    task: TaskRef::new(task),
                    waits_for: resource.waits_for.clone(),
                    line: wait.and_then(|wait| wait.line.clone()),
                    held_by: holders(snapshot, resource),
                });
            }
        }
        Self {
            is_certain: circle.is_certain,
            links,
        }
    }
}

impl Snapshot {
    /// Returns groups of tasks with equal stacks, as indices of [`Snapshot::tasks`]: the largest first.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut places: HashMap<(State, bool, &str, &[Frame]), usize> = HashMap::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let place = places
                .entry((task.state, task.in_block_on, &task.future, &task.frames))
                .or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
            if let Some(group) = groups.get_mut(*place) {
                group.push(number);
            }
        }
        // Of equally large ones, the oldest task first.
        let oldest = |group: &Vec<usize>| {
            group
                .iter()
                .filter_map(|number| Some(self.tasks.get(*number)?.id))
                .min()
        };
        groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), oldest(group)));
        groups
    }
}

/// Returns whether a frame's stage is worth a word.
pub(crate) fn stage_in_words(stage: Stage) -> &'static str {
    match stage {
        Stage::NotBegun => ", not yet polled",
        Stage::Unreadable => ", not readable",
        Stage::Suspended | Stage::HandWritten | Stage::Over | Stage::Called => "",
    }
}
