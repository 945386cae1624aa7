//! Several snapshots as evidence: waits followed to their ends, tasks by their future, and semaphores.

use std::collections::{BTreeMap, HashMap, HashSet};

use diagnosis::evidence::{self, StepKind};
use diagnosis::threads::roles::Whose;
use ecosystem::{PartMeaning, WaitKind, carries_requests};

use crate::model::{Certainty, Frame, Hold, Snapshot, State, Task, Wait};
use crate::names;
use crate::text::shortened;
use crate::types::Line;

/// Most steps from a wait to its end: the wait itself and five holders.
const MOST_STEPS: usize = 6;

/// Most holders of one resource that are followed.
const MOST_HOLDERS: usize = 32;

/// Most functions of libraries that a step keeps.
const MOST_THROUGH: usize = 16;

/// Most rows of each kind that the evidence keeps.
const MOST_ROWS: usize = 100;

/// Sums over snapshots.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    snapshots: u32,
    ways: BTreeMap<Vec<evidence::Step>, WaySums>,
    spawned: BTreeMap<SpawnedBy, [usize; 2]>,
    limits: BTreeMap<LimitOf, LimitSums>,
    sets: BTreeMap<SetOf, [u64; 2]>,
    circles: Vec<evidence::Circle>,
    /// Tasks whose code receives datagrams: the line at which it does, whether they do, and where they are.
    receivers: BTreeMap<(String, bool, evidence::Step), u64>,
}

#[derive(Debug, Default)]
struct WaySums {
    seen: f64,
    ends: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpawnedBy {
    future: String,
    begins: Option<String>,
    spawned_at: Option<String>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SetOf {
    kept_by: String,
    at: Option<String>,
    value: String,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LimitOf {
    kept_by: String,
    at: Option<String>,
    permits: u64,
}

#[derive(Debug, Default)]
struct LimitSums {
    semaphores: u32,
    held: u32,
    full: u32,
}

/// The part of a task that holds something.
#[derive(Clone, Copy)]
enum Part {
    /// All of it: it is waited for itself.
    Whole,
    /// The future with this index, and those inside.
    Frame(usize),
    /// A future that it keeps and does not poll.
    Aside,
}

impl Sums {
    /// Adds a snapshot.
    pub(crate) fn add(&mut self, snapshot: &Snapshot) {
        let mut ends: HashSet<(Vec<evidence::Step>, usize)> = HashSet::new();
        for (number, task) in snapshot.tasks.iter().enumerate() {
            for wait in task.waits.iter().filter(|wait| !wait.is_given) {
                let ways = ways(snapshot, number, task, wait);
                let part = 1.0 / f64::from(u32::try_from(ways.len()).unwrap_or(u32::MAX));
                for (steps, end) in ways {
                    self.ways.entry(steps.clone()).or_default().seen += part;
                    ends.insert((steps, end));
                }
            }
        }
        for (steps, _) in ends {
            self.ways.entry(steps).or_default().ends += 1;
        }
        for counts in self.spawned.values_mut() {
            counts[1] = 0;
        }
        for task in &snapshot.tasks {
            let by = SpawnedBy {
                future: shortened(&task.future),
                begins: task.begins.as_ref().map(Line::to_string),
                spawned_at: task.spawned_at.as_ref().map(Line::to_string),
            };
            let counts = self.spawned.entry(by).or_default();
            counts[0] += usize::from(self.snapshots == 0);
            counts[1] += 1;
        }
        self.add_limits(snapshot);
        self.add_sets(snapshot);
        self.add_receivers(snapshot);
        self.circles = circles(snapshot);
        self.snapshots += 1;
    }

    fn add_limits(&mut self, snapshot: &Snapshot) {
        let mut held: HashMap<u64, (LimitOf, u64, u64)> = HashMap::new();
        for task in &snapshot.tasks {
            for hold in &task.holds {
                let Some((permits, left)) = hold.permits else {
                    continue;
                };
                let limit = held
                    .entry(hold.address)
                    .or_insert_with(|| (limit_of(task, hold), 0, left));
                limit.1 += permits;
            }
        }
        for (mut of, permits, left) in held.into_values() {
            of.permits = permits + left;
            let sums = self.limits.entry(of).or_default();
            sums.semaphores += 1;
            sums.held += u32::try_from(permits).unwrap_or_default();
            sums.full += u32::from(left == 0);
        }
    }

    fn add_sets(&mut self, snapshot: &Snapshot) {
        let mut numbers: BTreeMap<SetOf, u64> = BTreeMap::new();
        for task in &snapshot.tasks {
            for set in &task.sets {
                let of = SetOf {
                    kept_by: shortened(&task.future),
                    at: place(task, set.frame).0,
                    value: value(&set.variable, &set.type_name),
                };
                *numbers.entry(of).or_default() += set.tasks;
            }
        }
        // A task that runs in a snapshot shows none.
        for (of, number) in numbers {
            self.sets.entry(of).or_insert([number; 2])[1] = number;
        }
    }

    fn add_receivers(&mut self, snapshot: &Snapshot) {
        for task in &snapshot.tasks {
            let Some(receives_at) = task.receives.as_ref().and_then(label) else {
                continue;
            };
            let mut frames = task.frames.iter();
            // A request that asks another service by UDP does other things most of the time.
            if frames.any(|frame| carries_requests(&names::path(&frame.future))) {
                continue;
            }
            let mut frames = task.frames.iter();
            let is_receiving =
                frames.any(|frame| PartMeaning::ReceivesDatagrams.fits(&frame.future));
            let (step, _) = step_of_holder(task, Part::Whole, None);
            let place = (receives_at, is_receiving, step);
            *self.receivers.entry(place).or_default() += 1;
        }
    }

    /// Returns the sums as evidence of `seconds`.
    pub(crate) fn finish(self, seconds: f64) -> evidence::Tasks {
        let mean = |sum: u32| f64::from(sum) / f64::from(self.snapshots.max(1));
        let mut tasks = evidence::Tasks {
            snapshots: self.snapshots,
            seconds,
            circles: self.circles,
            ..evidence::Tasks::default()
        };
        for (steps, sums) in self.ways {
            tasks.ways.push(evidence::Way {
                seen: sums.seen,
                ends: sums.ends,
                steps,
            });
        }
        for (by, [first, last]) in self.spawned {
            tasks.spawned.push(evidence::Spawned {
                future: by.future,
                begins: by.begins,
                spawned_at: by.spawned_at,
                first,
                last,
            });
        }
        for (of, sums) in self.limits {
            tasks.limits.push(evidence::Limit {
                kept_by: of.kept_by,
                at: of.at,
                permits: of.permits,
                semaphores: mean(sums.semaphores),
                held: mean(sums.held),
                full: mean(sums.full),
            });
        }
        for (of, [first, last]) in self.sets {
            tasks.sets.push(evidence::TaskSet {
                kept_by: of.kept_by,
                at: of.at,
                value: of.value,
                first,
                last,
            });
        }
        for ((receives_at, is_receiving, step), seen) in self.receivers {
            tasks.receivers.push(evidence::Receiver {
                receives_at,
                is_receiving,
                step,
                seen,
            });
        }
        tasks.ways.sort_by(|a, b| b.seen.total_cmp(&a.seen));
        tasks
            .spawned
            .sort_by_key(|spawned| std::cmp::Reverse((spawned.last, spawned.first)));
        tasks.limits.sort_by(|a, b| b.held.total_cmp(&a.held));
        tasks
            .sets
            .sort_by_key(|set| std::cmp::Reverse((set.last, set.first)));
        tasks
            .receivers
            .sort_by_key(|receiver| std::cmp::Reverse(receiver.seen));
        tasks.receivers.truncate(MOST_ROWS);
        tasks.ways.truncate(MOST_ROWS);
        tasks.spawned.truncate(MOST_ROWS);
        tasks.limits.truncate(MOST_ROWS);
        tasks.sets.truncate(MOST_ROWS);
        tasks
    }
}

/// Follows a wait to those who hold what it is for, and their own waits. Each way comes with the task at its end.
fn ways(
    snapshot: &Snapshot,
    number: usize,
    task: &Task,
    wait: &Wait,
) -> Vec<(Vec<evidence::Step>, usize)> {
    let first = step_of_wait(task, wait, None);
    let mut holders = holders(snapshot, wait.resource);
    holders.truncate(MOST_HOLDERS);
    if holders.is_empty() {
        return vec![(vec![first], number)];
    }
    let mut ways = Vec::new();
    for holder in holders {
        let (mut steps, mut met, mut next) = (vec![first.clone()], vec![number], Some(holder));
        // Of a holder's own wait, the first holder stands for all.
        while let Some((number, part, hold)) = next
            && steps.len() < MOST_STEPS
            && !met.contains(&number)
            && let Some(task) = snapshot.tasks.get(number)
        {
            met.push(number);
            let (step, resource) = step_of_holder(task, part, hold);
            steps.push(step);
            next = self::holders(snapshot, resource).first().copied();
        }
        ways.push((steps, met.last().copied().unwrap_or(number)));
    }
    ways
}

/// Returns the tasks that hold a resource, or that it is, with the part that does and the value.
fn holders(snapshot: &Snapshot, resource: Option<usize>) -> Vec<(usize, Part, Option<&Hold>)> {
    let mut holders = Vec::new();
    let Some(resource) = resource.and_then(|place| snapshot.resources.get(place)) else {
        return holders;
    };
    for (number, at) in &resource.holders {
        let hold = snapshot
            .tasks
            .get(*number)
            .and_then(|task| task.holds.get(*at));
        if let Some(hold) = hold {
            let part = hold.frame.map_or(Part::Aside, Part::Frame);
            holders.push((*number, part, Some(hold)));
        }
    }
    holders.extend(resource.task.map(|number| (number, Part::Whole, None)));
    holders
}

/// Returns where a holder is, and the resource for which it waits itself.
fn step_of_holder(task: &Task, part: Part, hold: Option<&Hold>) -> (evidence::Step, Option<usize>) {
    let is_inside = |wait: &&Wait| match part {
        Part::Whole => true,
        Part::Frame(frame) => is_within(&task.frames, wait.frame, frame),
        Part::Aside => false,
    };
    let waits: Vec<&Wait> = task.waits.iter().filter(is_inside).collect();
    let (kind, waits_for) = match (task.state, part, &waits[..]) {
        (State::Running, ..) => (
            StepKind::Of(WaitKind::Running),
            "nothing: a thread polls it",
        ),
        (State::Ready, ..) => (StepKind::Of(WaitKind::Ready), "a thread that polls it"),
        (State::Waiting, Part::Aside, _) => (StepKind::Unpolled, "somebody who polls it"),
        (State::Waiting, _, [wait]) if !wait.is_given => {
            return (step_of_wait(task, wait, hold), wait.resource);
        }
        (State::Waiting, _, [_, _, ..]) => (StepKind::Of(WaitKind::Set), "several things"),
        _ => (StepKind::Unknown, "something unknown"),
    };
    let innermost = match (part, &waits[..]) {
        (_, [wait, ..]) => Some(wait.frame),
        (Part::Frame(frame), []) => Some(frame),
        _ => task.frames.len().checked_sub(1),
    };
    let (at, through) = place(task, innermost);
    let step = evidence::Step {
        task: shortened(&task.future),
        at,
        kind,
        waits_for: waits_for.to_owned(),
        through,
        holds: hold.map(value_of),
    };
    (step, None)
}

fn step_of_wait(task: &Task, wait: &Wait, hold: Option<&Hold>) -> evidence::Step {
    let (at, through) = place(task, Some(wait.frame));
    evidence::Step {
        task: shortened(&task.future),
        at,
        kind: StepKind::named(wait.kind),
        waits_for: wait.waits_for.clone(),
        through,
        holds: hold.map(value_of),
    }
}

fn value_of(hold: &Hold) -> String {
    value(&hold.variable, &hold.type_name)
}

/// Returns a value with its type: `guard`, a `MutexGuard<Limiter>`.
fn value(variable: &str, type_name: &str) -> String {
    format!("`{variable}`, {}", shortened(type_name))
}

/// Returns the innermost line of the program's own code around a frame, with its function, and the libraries inside of it.
fn place(task: &Task, frame: Option<usize>) -> (Option<String>, Vec<String>) {
    let path = frame.map_or(Vec::new(), |frame| path_to(&task.frames, frame));
    let own = path.iter().rposition(|frame| own_line(frame).is_some());
    let at = own.and_then(|own| label(path[own]));
    let inside = own.map_or(0, |own| own + 1);
    let through = path[inside..].iter();
    let mut through: Vec<String> = through.map(|frame| names::path(&frame.future)).collect();
    through.drain(..through.len().saturating_sub(MOST_THROUGH));
    (at, through)
}

/// Returns the frames from the outermost to this one.
fn path_to(frames: &[Frame], to: usize) -> Vec<&Frame> {
    let mut path: Vec<&Frame> = Vec::new();
    for frame in frames.iter().take(to + 1).rev() {
        if path.last().is_none_or(|inner| frame.depth < inner.depth) {
            path.push(frame);
        }
    }
    path.reverse();
    path
}

/// Returns whether a frame is `outer`, or lies in it.
fn is_within(frames: &[Frame], frame: usize, outer: usize) -> bool {
    let Some(depth) = frames.get(outer).map(|outer| outer.depth) else {
        return false;
    };
    let Some(between) = frames.get(outer + 1..=frame) else {
        return frame == outer;
    };
    between.iter().all(|frame| frame.depth > depth)
}

/// Returns the line of a frame, if it is the program's own code.
fn own_line(frame: &Frame) -> Option<&Line> {
    // The await of a macro is in the macro's file.
    let line = frame.begins.as_ref().or(frame.line.as_ref())?;
    let whose = Whose::of(&frame.future, &line.file, is_of_package(&line.file));
    (whose == Whose::Own).then_some(line)
}

fn label(frame: &Frame) -> Option<String> {
    let line = own_line(frame)?;
    Some(format!("{} ({line})", names::path(&frame.future)))
}

/// Returns whether a file is of a dependency, which is shortened to its package, or of the standard library.
fn is_of_package(file: &str) -> bool {
    let folder = file.split('/').next().unwrap_or_default();
    let version = folder.rsplit_once('-').map_or("", |(_, version)| version);
    folder == "library" || version.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Returns what keeps a permit, with the outermost function of the program's own in it, without a size.
fn limit_of(task: &Task, hold: &Hold) -> LimitOf {
    let mut limit = LimitOf {
        kept_by: names::path(&hold.type_name),
        at: None,
        permits: 0,
    };
    let Some(frame) = hold.frame else {
        return limit;
    };
    limit.kept_by = task
        .frames
        .get(frame)
        .map_or(String::new(), |frame| names::path(&frame.future));
    for (number, inner) in task.frames.iter().enumerate() {
        if own_line(inner).is_some() && is_within(&task.frames, number, frame) {
            limit.at = Some(names::path(&inner.future));
            break;
        }
    }
    limit
}

fn circles(snapshot: &Snapshot) -> Vec<evidence::Circle> {
    let mut circles = Vec::new();
    for circle in &snapshot.circles {
        let mut steps = Vec::new();
        for (number, resource) in circle.tasks.iter().zip(&circle.resources) {
            let Some(task) = snapshot.tasks.get(*number) else {
                continue;
            };
            let wait = task
                .waits
                .iter()
                .find(|wait| wait.resource == Some(*resource));
            let held = task
                .holds
                .iter()
                .find(|hold| hold.certainty == Certainty::Agreed && hold.resource.is_some());
            steps.extend(wait.map(|wait| step_of_wait(task, wait, held)));
        }
        circles.push(evidence::Circle {
            is_certain: circle.is_certain,
            steps,
        });
    }
    circles.truncate(MOST_ROWS);
    circles
}
