//! A snapshot as text: groups of equal stacks, then who holds what, then circles.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use crate::model::{Certainty, Circle, Frame, Hold, Resource, Snapshot, Stage, State, Task, Wait};

/// Most numbers of tasks that are listed for a group.
const MOST_NUMBERS: usize = 5;

/// Most resources that are listed.
const MOST_RESOURCES: usize = 20;

/// Longest name of a future in letters, before its type parameters are left out.
const LONGEST_NAME: usize = 80;

impl Snapshot {
    /// Returns groups of tasks with equal stacks, as indices of [`Snapshot::tasks`]: the largest first.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut places: HashMap<(State, &str, &[Frame]), usize> = HashMap::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let place = places
                .entry((task.state, &task.future, &task.frames))
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

/// Leaves out the type parameters of a long name, such as those of a server's whole tree of routes: `Server<…>`. The name is
/// whole in the JSON.
fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let mut short = String::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    for letter in name.chars() {
        // The arrow of a function's type closes nothing.
        let closes = letter == '>' && before != '-';
        if closes {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            short.push(letter);
        }
        if letter == '<' {
            if depth == 0 {
                short.push('…');
            }
            depth += 1;
        }
        before = letter;
    }
    short
}

impl Display for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (tasks, runtimes) = (self.tasks.len(), self.runtimes.len());
        writeln!(
            f,
            "{} in {} of process {}",
            count(tasks, "task"),
            count(runtimes, "runtime"),
            self.pid
        )?;
        for group in self.groups() {
            let Some(task) = group.first().and_then(|number| self.tasks.get(*number)) else {
                continue;
            };
            self.group(f, task, &group)?;
        }
        let held = self
            .resources
            .iter()
            .filter(|resource| !resource.holders.is_empty() || resource.task.is_some());
        let held: Vec<&Resource> = held.take(MOST_RESOURCES).collect();
        if !held.is_empty() {
            writeln!(f, "\nWho waits for whom")?;
        }
        for resource in held {
            self.resource(f, resource)?;
        }
        for circle in &self.circles {
            self.circle(f, circle)?;
        }
        writeln!(f, "\nNot seen")?;
        for not_seen in &self.not_seen {
            writeln!(f, "  {not_seen}")?;
        }
        Ok(())
    }
}

impl Snapshot {
    fn group(&self, f: &mut Formatter<'_>, task: &Task, group: &[usize]) -> fmt::Result {
        let state = match task.state {
            State::Waiting => "waiting",
            State::Ready => "ready: woken, and not yet polled",
            State::Running => "running, so where it is cannot be read",
            State::Finished => "finished",
            State::Unknown => "in an unknown state",
        };
        let ids: Vec<String> = group
            .iter()
            .take(MOST_NUMBERS)
            .filter_map(|number| Some(self.tasks.get(*number)?.id.to_string()))
            .collect();
        let more = if group.len() > MOST_NUMBERS {
            ", …"
        } else {
            ""
        };
        writeln!(
            f,
            "\n{}, {state}: {} (number {}{more})",
            count(group.len(), "task"),
            shortened(&task.future),
            ids.join(", ")
        )?;
        if let Some(begins) = task.begins.as_ref().filter(|_| task.frames.is_empty()) {
            writeln!(f, "  begins at {begins}")?;
        }
        // Frames are indented only where a future polls several.
        let mut indents: Vec<usize> = Vec::new();
        for (number, frame) in task.frames.iter().enumerate() {
            let above = frame
                .depth
                .checked_sub(1)
                .and_then(|above| indents.get(above))
                .copied()
                .unwrap_or(1);
            let siblings = siblings(&task.frames, number);
            indents.truncate(frame.depth);
            indents.push(if siblings > 1 { above + 1 } else { above });
            let indent = "  ".repeat(indents.last().copied().unwrap_or(1));
            writeln!(f, "{indent}{frame}")?;
            for wait in task.waits.iter().filter(|wait| wait.frame == number) {
                writeln!(f, "{indent}  waits for {wait}")?;
            }
            for hold in task
                .holds
                .iter()
                .filter(|hold| hold.frame == Some(number) && hold.certainty != Certainty::Doubtful)
            {
                writeln!(f, "{indent}  {hold}")?;
            }
        }
        for not_seen in &task.not_seen {
            writeln!(f, "  not seen: {not_seen}")?;
        }
        Ok(())
    }

    fn resource(&self, f: &mut Formatter<'_>, resource: &Resource) -> fmt::Result {
        let waiters = count(resource.waiters.len(), "task");
        let verb = if resource.waiters.len() == 1 {
            "waits"
        } else {
            "wait"
        };
        write!(f, "  {waiters} {verb} for {}", resource.waits_for)?;
        if let Some(line) = self.line_of_waiters(resource) {
            write!(f, " at {line}")?;
        }
        if let Some(task) = resource.task.and_then(|number| self.tasks.get(number)) {
            return writeln!(f, ": task {} ({}){}", task.id, task.future, then(task));
        }
        writeln!(f)?;
        for (number, at) in &resource.holders {
            let Some(task) = self.tasks.get(*number) else {
                continue;
            };
            let Some(hold) = task.holds.get(*at) else {
                continue;
            };
            let verb = if resource.is_complete {
                "holds"
            } else {
                "may hold"
            };
            let line = hold
                .line
                .as_ref()
                .map(|line| format!(", suspended at {line}"));
            let line = line.unwrap_or_default();
            let aside = if hold.frame.is_none() {
                ", in a future that is kept and not polled"
            } else {
                ""
            };
            writeln!(
                f,
                "    task {} {verb} {} (`{}`, a {}){line}{aside}{}",
                task.id,
                hold.holds,
                hold.variable,
                hold.type_name,
                then(task)
            )?;
        }
        Ok(())
    }

    /// Returns the line at which all waiters wait, if it is one.
    fn line_of_waiters(&self, resource: &Resource) -> Option<String> {
        let mut lines = Vec::new();
        for number in &resource.waiters {
            let mut waits = self.tasks.get(*number)?.waits.iter();
            let wait = waits.find(|wait| wait.address == Some(resource.address))?;
            let line = wait.line.as_ref()?.to_string();
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        (lines.len() <= 3).then(|| lines.join(", "))
    }

    fn circle(&self, f: &mut Formatter<'_>, circle: &Circle) -> fmt::Result {
        let word = if circle.is_certain {
            "Deadlock"
        } else {
            "Probable deadlock"
        };
        match circle.tasks.len() {
            1 => writeln!(f, "\n{word}: a task waits for itself")?,
            several => writeln!(
                f,
                "\n{word}: {several} tasks wait for each other in a circle"
            )?,
        }
        for (number, place) in circle.tasks.iter().zip(&circle.resources) {
            let (Some(task), Some(resource)) =
                (self.tasks.get(*number), self.resources.get(*place))
            else {
                continue;
            };
            let wait = task.waits.iter().find(|wait| wait.resource == Some(*place));
            let line = wait
                .and_then(|wait| wait.line.as_ref())
                .map(|line| format!(" at {line}"))
                .unwrap_or_default();
            writeln!(
                f,
                "  task {} ({}) waits for {}{line}",
                task.id, task.future, resource.waits_for
            )?;
            for (holder, at) in &resource.holders {
                let Some(holder) = self.tasks.get(*holder) else {
                    continue;
                };
                let Some(hold) = holder.holds.get(*at) else {
                    continue;
                };
                writeln!(
                    f,
                    "    held by task {}: `{}`, a {}",
                    holder.id, hold.variable, hold.type_name
                )?;
            }
        }
        Ok(())
    }
}

/// Returns what a holder waits for in turn.
fn then(task: &Task) -> String {
    match (task.state, &task.waits[..]) {
        (State::Waiting, []) | (State::Unknown, _) => String::new(),
        (State::Waiting, [wait]) => format!("; it waits for {wait}"),
        (State::Waiting, [wait, ..]) => format!("; it waits for {wait}, and more"),
        (State::Ready, _) => "; it is ready".to_owned(),
        (State::Running, _) => "; it is running".to_owned(),
        (State::Finished, _) => "; it has finished".to_owned(),
    }
}

/// Returns how many futures the frame around this one polls.
fn siblings(frames: &[Frame], number: usize) -> usize {
    let Some(depth) = frames.get(number).map(|frame| frame.depth) else {
        return 0;
    };
    let before = frames
        .iter()
        .take(number)
        .rev()
        .take_while(|frame| frame.depth >= depth);
    let after = frames
        .iter()
        .skip(number)
        .take_while(|frame| frame.depth >= depth);
    // The frame itself is the first of those after, and ends with the next of its depth.
    let after = after
        .enumerate()
        .filter(|(at, frame)| *at == 0 || frame.depth == depth)
        .count();
    before.filter(|frame| frame.depth == depth).count() + after
}

impl Display for Frame {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(&self.future))?;
        match (&self.line, &self.begins) {
            (Some(line), Some(begins)) => {
                write!(f, " ({line}, in a macro of the function at {begins})")?;
            }
            (Some(line), None) => write!(f, " ({line})")?,
            (None, _) => {}
        }
        match self.stage {
            Stage::NotBegun => f.write_str(", not yet polled"),
            Stage::Unreadable => f.write_str(", not readable"),
            Stage::Suspended | Stage::HandWritten | Stage::Over => Ok(()),
        }
    }
}

impl Display for Wait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.waits_for)?;
        if self.is_given {
            f.write_str(", and has it")?;
        }
        Ok(())
    }
}

impl Display for Hold {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verb = if self.certainty == Certainty::Agreed {
            "holds"
        } else {
            "may hold"
        };
        write!(
            f,
            "{verb} {}: `{}`, a {}",
            self.holds, self.variable, self.type_name
        )
    }
}

/// Returns a number with its noun.
fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_names_lose_their_type_parameters() {
        let long = format!(
            "hyper::Connection<Routes<fn(u8) -> {}>, Io>::{{closure}}",
            "a".repeat(80)
        );
        assert_eq!(shortened(&long), "hyper::Connection<…>::{closure}");
        assert_eq!(
            shortened("tokio::time::Timeout<Sleep>"),
            "tokio::time::Timeout<Sleep>"
        );
    }
}
