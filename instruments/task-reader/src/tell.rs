//! Turns the futures of a task into its stack, its waits and what it may hold.

use crate::kinds::{KINDS, Wait as Row};
use crate::model::{Certainty, Frame, Hold, Stage, State, Task, Wait};
use crate::names;
use crate::runtime::{self, Listed};
use crate::task_type::{TaskType, TaskTypes, future};
use crate::types::Line;
use crate::value::{Reach, Reading, Value};
use crate::walk::{self, Kept, Node, Walker};

/// Bits of a task's state word (`tokio::runtime::task::state`, the same since tokio 1.0). The debug information has no
/// constants.
const RUNNING: u64 = 0b1;
const COMPLETE: u64 = 0b10;
const NOTIFIED: u64 = 0b100;

/// Reads a task.
pub(crate) fn task(walker: &Walker<'_, '_, '_, '_>, types: &TaskTypes, listed: Listed) -> Task {
    let reading = walker.reading;
    let state = state(reading, listed.header);
    let mut task = Task {
        id: runtime::id(reading, listed.header).unwrap_or_default(),
        runtime: listed.runtime,
        state,
        stayed: u32::from(state == State::Waiting),
        thread: None,
        future: String::new(),
        begins: None,
        frames: Vec::new(),
        waits: Vec::new(),
        holds: Vec::new(),
        not_seen: Vec::new(),
        address: listed.header.address,
    };
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
            let future = future(reading, cell);
            let of = future.and_then(|future| reading.type_of(future));
            task.begins = of.and_then(|of| of.first_line().cloned());
            // What a thread works on changes under our eyes.
            if let Some(future) =
                future.filter(|_| matches!(task.state, State::Waiting | State::Ready))
            {
                match walker.walk(future) {
                    Some(node) => Teller {
                        reading,
                        task: &mut task,
                    }
                    .node(&node, &mut Vec::new()),
                    None => task.not_seen.push("its future".to_owned()),
                }
            }
        }
    }
    task
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
    reading: &'w Reading<'r, 'i, 'a>,
    task: &'t mut Task,
}

impl<'n> Teller<'_, '_, '_, '_, '_> {
    fn node(&mut self, node: &'n Node, around: &mut Vec<&'n Node>) {
        if node.stage == walk::Stage::Over {
            return;
        }
        let frame = self.task.frames.len();
        let (stage, line) = stage(node);
        let future = names::of_future(&node.of.name);
        // The await of a macro such as `select!` is in the macro's own file.
        let is_elsewhere =
            |begins: &&Line| line.as_ref().is_some_and(|line| line.file != begins.file);
        let begins = node.of.first_line().filter(is_elsewhere).cloned();
        self.task.frames.push(Frame {
            depth: around.len(),
            future,
            begins,
            line,
            stage,
        });
        if node.stage == walk::Stage::Unreadable {
            self.task
                .not_seen
                .push(format!("the state of {}", names::of_future(&node.of.name)));
        }
        self.task.not_seen.extend(node.unseen.iter().cloned());
        self.holds(node, Some(frame));
        let timer = KINDS
            .timer(&node.of.path)
            .and_then(|timer| self.reading.find(node.value, timer, Reach::WithinValue));
        around.push(node);
        for child in &node.children {
            // The timer of a limit is no wait of its own.
            if timer.is_none_or(|timer| timer.address != child.value.address) {
                self.node(child, around);
            }
        }
        let is_begun = !matches!(
            node.stage,
            walk::Stage::NotBegun(_) | walk::Stage::Unreadable
        );
        if node.children.is_empty() && node.unseen.is_empty() && is_begun {
            let wait = self.wait(frame, around);
            self.task.waits.push(wait);
        }
        around.pop();
    }

    /// Says what the innermost future waits for.
    fn wait(&self, frame: usize, around: &[&Node]) -> Wait {
        let is_of = |node: &Node, name: &str| node.of.path.split("::").next() == Some(name);
        let is_plain =
            |node: &Node| is_of(node, "core") || is_of(node, "alloc") || is_of(node, "std");
        // The futures of one crate, from the leaf outwards: what its user has called is the outermost of them.
        let inner = || around.iter().rev();
        let name = inner()
            .find(|node| !is_plain(node))
            .and_then(|node| node.of.path.split("::").next());
        let run =
            inner().take_while(|node| is_plain(node) || name.is_some_and(|name| is_of(node, name)));
        let mut rows: Vec<(&Node, &Row)> = Vec::new();
        for node in run {
            rows.extend(KINDS.wait(&node.of.path).map(|row| (*node, row)));
        }
        let line_of = |node: &&&Node| matches!(stage(node), (Stage::Suspended, Some(_)));
        let line = |node: &&Node| stage(node).1;
        let Some((_, named)) = rows.last() else {
            let leaf = around
                .last()
                .map(|leaf| names::of_future(&leaf.of.name))
                .unwrap_or_default();
            return Wait {
                frame,
                kind: "unknown",
                waits_for: format!("a hand-written future, {leaf}"),
                line: inner().find(line_of).and_then(line),
                resource: None,
                is_given: false,
                has: 0,
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
        let outside = || {
            inner().skip_while(|node| is_plain(node) || name.is_some_and(|name| is_of(node, name)))
        };
        Wait {
            frame,
            kind: named.kind,
            waits_for: named.waits_for.to_owned(),
            line: outside()
                .find(line_of)
                .or_else(|| around.iter().find(line_of))
                .and_then(line),
            resource: None,
            is_given: has.is_some_and(|(_, left)| left == 0),
            has: has.map_or(0, |(wants, left)| wants.saturating_sub(left)),
            address: resource.map(|resource| resource.address),
        }
    }

    fn holds(&mut self, node: &Node, frame: Option<usize>) {
        let (_, line) = stage(node);
        for kept in &node.kept {
            let hold = self.hold(kept, frame, line.clone());
            // Of guesses that lead to one resource, one is the variable.
            let is_known = |hold: &Hold| {
                self.task
                    .holds
                    .iter()
                    .any(|other| other.address == hold.address)
            };
            self.task
                .holds
                .extend(hold.filter(|hold| !kept.is_guessed || !is_known(hold)));
        }
        for (aside, may_be_gone) in &node.aside {
            let before = self.task.holds.len();
            self.holds_aside(aside);
            for hold in self.task.holds.iter_mut().skip(before) {
                hold.may_be_gone |= *may_be_gone;
            }
        }
    }

    /// Adds what a future holds that is kept and not awaited, with all futures in it.
    fn holds_aside(&mut self, node: &Node) {
        if node.stage != walk::Stage::Over {
            self.holds(node, None);
            for child in &node.children {
                self.holds_aside(child);
            }
        }
    }

    fn hold(&self, kept: &Kept, frame: Option<usize>, line: Option<Line>) -> Option<Hold> {
        let row = KINDS.holder(&kept.of.path)?;
        let number =
            |value: Value, path: &[&str]| self.reading.number(self.reading.follow(value, path)?);
        if let Some(live_if) = &row.live_if
            && number(kept.value, live_if) == Some(0)
        {
            return None;
        }
        let resource = self
            .reading
            .resource(self.reading.follow(kept.value, &row.resource)?)?;
        Some(Hold {
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
            may_be_gone: kept.may_be_gone,
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
