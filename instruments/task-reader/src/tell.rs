//! Turns the futures of a task into its stack, its waits and what it may hold.

use std::ops::Range;

use ecosystem::kinds::{self, Wait as Row};

use crate::blocked::Blocked;
use crate::drops::Drops;
use crate::model::{Certainty, Frame, Hold, Stage, State, Task, TaskSet, Wait};
use crate::names;
use crate::runtime::{self, Listed};
use crate::task_type::{self, TaskType, TaskTypes, future};
use crate::types::Line;
use crate::value::{Reach, Reading, Value};
use crate::walk::{self, Kept, Node, Walker};

/// Bits of a task's state word (`tokio::runtime::task::state`, the same since tokio 1.0). The debug information has no
/// constants.
const RUNNING: u64 = 0b1;
const COMPLETE: u64 = 0b10;
const NOTIFIED: u64 = 0b100;

/// Crates whose futures only pass others on.
const PLAIN: [&str; 4] = ["alloc", "core", "futures_util", "std"];

/// Wait of a connection that sends a body of its own kind.
const BODY: &str = "the next piece of an answer, or room to send it";

/// A task, and others that it leads to.
pub(crate) struct Told {
    pub(crate) task: Task,
    /// Lists of the tasks that its futures poll.
    pub(crate) lists: Vec<Value>,
    /// Headers of finished tasks whose results it has not taken.
    pub(crate) finished: Vec<Value>,
}

impl Told {
    fn new(address: u64, runtime: usize, state: State) -> Self {
        let task = Task {
            id: 0,
            runtime,
            state,
            stayed: u32::from(state == State::Waiting),
            thread: None,
            in_block_on: false,
            future: String::new(),
            begins: None,
            spawned_at: None,
            ready_for: None,
            frames: Vec::new(),
            waits: Vec::new(),
            holds: Vec::new(),
            sets: Vec::new(),
            receives: None,
            not_seen: Vec::new(),
            address,
            memory: Vec::new(),
        };
        Self {
            task,
            lists: Vec::new(),
            finished: Vec::new(),
        }
    }
}

/// Reads a task. `drops` says which values are alive.
pub(crate) fn task(
    walker: &Walker<'_, '_, '_, '_>,
    types: &TaskTypes,
    drops: &Drops,
    listed: Listed,
) -> Told {
    let reading = walker.reading;
    let state = state(reading, listed.header);
    let mut told = Told::new(listed.header.address, listed.runtime, state);
    let task = &mut told.task;
    task.id = runtime::id(reading, listed.header).unwrap_or_default();
    match &*types.of_task(reading, listed.header) {
        TaskType::Unknown => {
            "a future that the debug information does not name".clone_into(&mut task.future);
            task.not_seen.push("its type".to_owned());
        }
        TaskType::Ambiguous(names) => {
            let names: Vec<String> = names.iter().map(|name| names::of_future(name)).collect();
            task.future = format!("one of {}", names.join(", "));
            task.not_seen
                .push("its type: the linker has folded functions of several".to_owned());
        }
        TaskType::Future { cell, name } => {
            let cell = Value {
                of: *cell,
                ..listed.header
            };
            task.future = names::of_future(name);
            if task.id == 0 {
                let id = reading.find(cell, "task_id", Reach::WithinValue);
                task.id = id.and_then(|id| reading.number(id)).unwrap_or_default();
            }
            task.spawned_at = spawned_at(reading, cell);
            let future = future(reading, cell);
            task.receives =
                future.and_then(|future| walker.receivers.receives(reading.types, future.of));
            let of = future.and_then(|future| reading.type_of(future));
            task.begins = of.and_then(|of| of.first_line().cloned());
            // What a thread works on changes under our eyes.
            if let Some(future) =
                future.filter(|_| matches!(task.state, State::Waiting | State::Ready))
            {
                task.memory.extend(reading.range(cell));
                let node = walker.walk(future);
                if let Some(boxed) = node.as_ref().and_then(Node::boxed) {
                    task.future = names::of_future(&boxed.of.name);
                    task.begins = boxed.of.first_line().cloned();
                }
                match node {
                    Some(node) => Teller {
                        walker,
                        types,
                        reading,
                        drops,
                        outside: task_type::around(reading, cell, future),
                        last: task_type::deallocates(reading, listed.header),
                        told: &mut told,
                    }
                    .node(&node, &mut Vec::new()),
                    None => task.not_seen.push("its future".to_owned()),
                }
            }
        }
    }
    told
}

/// Reads a future that `block_on` polls, in the runtime of its thread.
pub(crate) fn blocked(
    walker: &Walker<'_, '_, '_, '_>,
    types: &TaskTypes,
    drops: &Drops,
    blocked: Blocked,
    runtime: usize,
) -> Told {
    let reading = walker.reading;
    let state = match blocked.polled {
        Some(_) => State::Running,
        None => State::Waiting,
    };
    let mut told = Told::new(blocked.future.address, runtime, state);
    let task = &mut told.task;
    (task.thread, task.in_block_on) = (Some(blocked.tid), true);
    task.receives = walker.receivers.receives(reading.types, blocked.future.of);
    let of = reading.type_of(blocked.future);
    task.future = of.map_or_else(String::new, |of| names::of_future(&of.name));
    let node = walker.walk(blocked.future).map(Node::unboxed);
    if let Some(node) = &node {
        task.future = names::of_future(&node.of.name);
        task.begins = node.of.first_line().cloned();
    }
    match (blocked.polled, node) {
        (Some(frames), _) => task.frames = frames,
        (None, None) => task.not_seen.push("its memory".to_owned()),
        (None, Some(node)) => Teller {
            walker,
            types,
            reading,
            drops,
            outside: Vec::new(),
            last: None,
            told: &mut told,
        }
        .node(&node, &mut Vec::new()),
    }
    told
}

/// Returns the line that spawned a task, if tokio was built to note it.
fn spawned_at(reading: &Reading<'_, '_, '_>, cell: Value) -> Option<Line> {
    let place = reading.find(cell, "spawned_at", Reach::WithinValue)?;
    let number = |name| reading.number(reading.find(place, name, Reach::ThroughPointers)?);
    let file = reading.find(place, "filename", Reach::ThroughPointers);
    let file = file.or_else(|| reading.find(place, "file", Reach::ThroughPointers))?;
    Some(Line {
        file: names::of_file(&reading.text(file)?, "//"),
        line: number("line")?,
    })
}

fn state(reading: &Reading<'_, '_, '_>, header: Value) -> State {
    let word = reading
        .find(header, "state", Reach::WithinValue)
        .and_then(|state| reading.number(state));
    match word {
        None => State::Unknown,
        Some(word) if word & COMPLETE != 0 => State::Finished,
        Some(word) if word & RUNNING != 0 => State::Running,
        Some(word) if word & NOTIFIED != 0 => State::Ready,
        Some(_) => State::Waiting,
    }
}

/// Writes a task's part of the snapshot.
struct Teller<'t, 'w, 'r, 'i, 'a> {
    walker: &'t Walker<'w, 'r, 'i, 'a>,
    types: &'t TaskTypes,
    reading: &'w Reading<'r, 'i, 'a>,
    drops: &'t Drops,
    /// What the whole future is in, the innermost first.
    outside: Vec<Value>,
    /// The function that drops the task, and what it is called with.
    last: Option<(u64, u64)>,
    told: &'t mut Told,
}

impl<'n> Teller<'_, '_, '_, '_, '_> {
    fn node(&mut self, node: &'n Node, around: &mut Vec<&'n Node>) {
        if node.stage == walk::Stage::Over {
            return;
        }
        let frame = self.told.task.frames.len();
        let is_new = |range: &Range<u64>| {
            let mut known = self.told.task.memory.iter();
            !known.any(|known| known.contains(&range.start))
        };
        let memory = self.reading.range(node.value).filter(is_new);
        self.told.task.memory.extend(memory);
        let (stage, line) = stage(node);
        let future = names::of_future(&node.of.name);
        // The await of a macro such as `select!` is in the macro's own file.
        let is_elsewhere =
            |begins: &&Line| line.as_ref().is_some_and(|line| line.file != begins.file);
        let begins = node.of.first_line().filter(is_elsewhere).cloned();
        self.told.task.frames.push(Frame {
            depth: around.len(),
            future,
            begins,
            line,
            stage,
        });
        if node.stage == walk::Stage::Unreadable {
            self.told
                .task
                .not_seen
                .push(format!("the state of {}", names::of_future(&node.of.name)));
        }
        self.told.task.not_seen.extend(node.unseen.iter().cloned());
        let list =
            kinds::tasks(&node.of.path).and_then(|list| self.reading.follow(node.value, list));
        self.told.lists.extend(list);
        let mut owners = vec![node.value];
        owners.extend(around.iter().rev().map(|around| around.value));
        owners.extend(&self.outside);
        self.holds(node, Some(frame), &owners, &[]);
        around.push(node);
        for child in &node.children {
            self.node(child, around);
        }
        let is_begun = !matches!(
            node.stage,
            walk::Stage::NotBegun(_) | walk::Stage::Unreadable
        );
        if node.children.is_empty() && node.unseen.is_empty() && is_begun {
            let wait = self.wait(frame, around);
            self.told.task.waits.push(wait);
        }
        around.pop();
    }

    /// Says what the innermost future waits for.
    fn wait(&self, frame: usize, around: &[&Node]) -> Wait {
        let is_of = |node: &Node, name: &str| node.of.path.split("::").next() == Some(name);
        let is_plain = |node: &Node| PLAIN.iter().any(|plain| is_of(node, plain));
        // The futures of one crate, from the leaf outwards: what its user has called is the outermost of them. If the tables
        // know the user, too, such as a pool, the same holds for the user's user.
        let inner = || around.iter().rev();
        let (mut rows, mut depth): (Vec<(&Node, &Row)>, usize) = (Vec::new(), 0);
        let mut names = Vec::new();
        loop {
            let next = inner().skip(depth).find(|node| !is_plain(node));
            let next = next.and_then(|node| node.of.path.split("::").next());
            let is_run =
                |node: &&&Node| is_plain(node) || next.is_some_and(|name| is_of(node, name));
            let run: Vec<&Node> = inner().skip(depth).take_while(is_run).copied().collect();
            let known = rows.len();
            for node in &run {
                rows.extend(kinds::wait(&node.of.path).map(|row| (*node, row)));
            }
            if depth == 0 || rows.len() > known {
                names.extend(next);
            }
            depth += run.len();
            if run.is_empty() || rows.len() == known {
                break;
            }
        }
        let line_of = |node: &&&Node| matches!(stage(node), (Stage::Suspended, Some(_)));
        let line = |node: &&Node| stage(node).1;
        let Some((_, last_known)) = rows.last() else {
            let leaf = around
                .last()
                .map(|leaf| names::of_future(&leaf.of.name))
                .unwrap_or_default();
            let (kind, waits_for) = if around.iter().any(|node| node.is_body) {
                ("body", BODY.to_owned())
            } else {
                ("unknown", format!("a hand-written future, {leaf}"))
            };
            return Wait {
                frame,
                kind,
                waits_for,
                line: inner().find(line_of).and_then(line),
                peer: None,
                resource: None,
                is_given: false,
                has: 0,
                descriptor: around.last().and_then(|leaf| self.descriptor(leaf)),
                address: None,
            };
        };
        let resource = rows.iter().rev().find_map(|(node, row)| {
            let resource = self.reading.follow(node.value, row.resource.as_ref()?)?;
            self.reading.resource(resource)
        });
        let has = rows.iter().find_map(|(node, row)| {
            let (wants, left) = row.has.as_ref()?;
            let number = |path| self.reading.number(self.reading.follow(node.value, path)?);
            Some((number(wants)?, number(left)?))
        });
        let is_inside = |node: &&&Node| names.iter().any(|name| is_of(node, name));
        let outside = || inner().filter(|node| !is_plain(node) && !is_inside(node));
        Wait {
            frame,
            kind: last_known.kind,
            waits_for: last_known.waits_for.to_owned(),
            line: outside()
                .find(line_of)
                .or_else(|| around.iter().find(line_of))
                .and_then(line),
            peer: None,
            resource: None,
            is_given: has.is_some_and(|(_, left)| left == 0),
            has: has.map_or(0, |(wants, left)| wants.saturating_sub(left)),
            descriptor: rows
                .iter()
                .filter(|(_, row)| row.kind == "network")
                .find_map(|(node, _)| self.descriptor(node)),
            address: resource.map(|resource| resource.address),
        }
    }

    /// Returns the descriptor of the socket that a future has.
    fn descriptor(&self, node: &Node) -> Option<u64> {
        self.walker.sockets.descriptor(self.reading, node.value)
    }

    /// Adds what a future holds. Dropping its owners drops it, too, by way of the futures that are kept in between.
    fn holds(&mut self, node: &Node, frame: Option<usize>, owners: &[Value], between: &[Value]) {
        let (_, line) = stage(node);
        for kept in &node.kept {
            let hold = self.hold(kept, frame, line.clone(), owners, between);
            // Of guesses that lead to one resource, one is the variable.
            let is_known = |hold: &Hold| {
                self.told
                    .task
                    .holds
                    .iter()
                    .any(|other| other.address == hold.address)
            };
            self.told
                .task
                .holds
                .extend(hold.filter(|hold| !kept.is_guessed || !is_known(hold)));
        }
        for (set, number) in &node.sets {
            self.told.task.sets.push(TaskSet {
                frame,
                variable: set.name.to_string(),
                type_name: names::short(&set.of.name),
                tasks: *number,
            });
        }
        for handle in &node.handles {
            self.finished(handle, frame, line.clone(), owners, between);
        }
        for aside in &node.aside {
            self.holds_aside(aside, owners, between);
        }
    }

    /// Adds a task that has finished, if a live handle still has its result.
    fn finished(
        &mut self,
        handle: &Kept,
        frame: Option<usize>,
        line: Option<Line>,
        owners: &[Value],
        between: &[Value],
    ) {
        let task = kinds::handle(&handle.of.path);
        let task = task.and_then(|task| self.reading.follow(handle.value, task));
        let Some(header) = task.and_then(|task| self.reading.pointee(task)) else {
            return;
        };
        // The place of a handle that was moved leads to memory that may be anything by now.
        let is_dropped = || {
            let value = (handle.value, header.address);
            self.drops
                .is_dropped(self.reading, value, owners, between, self.last)
        };
        if state(self.reading, header) != State::Finished
            || !self.has_result(header)
            || is_dropped() != Some(true)
        {
            return;
        }
        self.told.finished.push(header);
        self.told.task.holds.push(Hold {
            frame,
            holds: "the result of a finished task",
            variable: handle.name.to_string(),
            type_name: names::short(&handle.of.name),
            line,
            resource: None,
            certainty: Certainty::Doubtful,
            address: header.address,
            value: handle.value.address,
            out: None,
            is_dropped: Some(true),
            permits: None,
        });
    }

    /// Adds what a future holds that is kept and not awaited, with all futures in it.
    fn holds_aside(&mut self, node: &Node, owners: &[Value], between: &[Value]) {
        if node.stage != walk::Stage::Over {
            let between = [between, &[node.value]].concat();
            self.holds(node, None, owners, &between);
            for child in &node.children {
                self.holds_aside(child, owners, &between);
            }
        }
    }

    /// Returns whether a task still has its result.
    fn has_result(&self, header: Value) -> bool {
        match &*self.types.of_task(self.reading, header) {
            TaskType::Future { cell, .. } => {
                let cell = Value {
                    of: *cell,
                    ..header
                };
                task_type::has_result(self.reading, cell)
            }
            _ => false,
        }
    }

    fn hold(
        &self,
        kept: &Kept,
        frame: Option<usize>,
        line: Option<Line>,
        owners: &[Value],
        between: &[Value],
    ) -> Option<Hold> {
        let row = kinds::holder(&kept.of.path)?;
        let number =
            |value: Value, path: &[&str]| self.reading.number(self.reading.follow(value, path)?);
        let amount = row
            .live_if
            .as_ref()
            .and_then(|live_if| number(kept.value, live_if));
        if amount == Some(0) {
            return None;
        }
        let resource = self
            .reading
            .resource(self.reading.follow(kept.value, &row.resource)?)?;
        // Nearly all guesses are wrong, and each costs as much as a value that is known to be there.
        if kept.is_guessed && !self.drops.may_be_wanted(resource.address) {
            return None;
        }
        let is_dropped = self.drops.is_dropped(
            self.reading,
            (kept.value, resource.address),
            owners,
            between,
            self.last,
        );
        // It was moved or dropped before.
        if is_dropped == Some(false) {
            return None;
        }
        let left = row
            .left
            .as_ref()
            .and_then(|left| left.count(|path| number(resource, path)));
        Some(Hold {
            permits: amount.zip(left),
            frame,
            holds: row.holds,
            variable: kept.name.to_string(),
            type_name: names::short(&kept.of.name),
            line,
            resource: None,
            certainty: Certainty::Doubtful,
            address: resource.address,
            value: kept.value.address,
            out: row
                .out
                .as_ref()
                .map(|out| out.count(|path| number(resource, path)).unwrap_or(u64::MAX)),
            is_dropped,
        })
    }
}

fn stage(node: &Node) -> (Stage, Option<Line>) {
    match &node.stage {
        walk::Stage::NotBegun(line) => (Stage::NotBegun, line.clone()),
        walk::Stage::Suspended(line) => (Stage::Suspended, line.clone()),
        walk::Stage::Over => (Stage::Over, None),
        walk::Stage::Other => (Stage::HandWritten, None),
        walk::Stage::Unreadable => (Stage::Unreadable, None),
    }
}
