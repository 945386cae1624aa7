//! A report as text: groups of equal stacks, then who holds what, then circles.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::model::{Frame, Snapshot, State};
use crate::report::{
    Deadlock, Group, Holder, Holds, Link, Report, TaskRef, WaitsFor, Wanted, stage_in_words,
};
use crate::types::Line;

/// Most numbers of tasks that are listed for a group.
const MOST_NUMBERS: usize = 5;

/// Longest name of a future in letters, before its type parameters are left out.
const LONGEST_NAME: usize = 80;

/// Leaves out the type parameters of a long name, such as those of a server's whole tree of routes: `Server<…>`. The name is
/// whole in the JSON.
pub fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    without_parameters(name)
}

/// Leaves out the type parameters of a name: `Server<…>`.
pub(crate) fn without_parameters(name: &str) -> String {
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
        Report::new(self, None).fmt(f)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        for group in &self.groups {
            writeln!(f)?;
            group.write(f, self.snapshots)?;
        }
        if !self.resources.is_empty() {
            writeln!(f, "\nWho waits for whom")?;
        }
        for resource in &self.resources {
            writeln!(f, "  {}", resource.waiting(self.snapshots))?;
            for who in resource.who(self.snapshots) {
                writeln!(f, "    {who}")?;
            }
        }
        for circle in &self.circles {
            writeln!(f, "\n{circle}")?;
        }
        writeln!(f, "\nNot seen")?;
        for not_seen in &self.not_seen {
            writeln!(f, "  {not_seen}")?;
        }
        Ok(())
    }
}

impl Report {
    /// Returns who waits for whom, and deadlocks, in lines. The largest come first, at most `most` of each.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for circle in self.circles.iter().take(most) {
            lines.extend(circle.to_string().lines().map(str::to_owned));
        }
        for resource in self.resources.iter().take(most) {
            lines.push(resource.waiting(self.snapshots));
            let who = resource.who(self.snapshots);
            lines.extend(who.iter().take(most).map(|who| format!("  {who}")));
        }
        lines
    }

    /// Returns how many tasks are shown, in a line.
    pub fn title(&self) -> String {
        let runtimes = count(self.runtimes.len(), "runtime");
        let mut title = match &self.of {
            None => count(self.tasks, "task"),
            Some(of) => {
                let tasks = self.groups.iter().filter(|group| !group.in_block_on);
                let shown: usize = tasks.map(|group| group.count).sum();
                let verb = if shown == 1 { "has" } else { "have" };
                let tasks = count(self.tasks, "task");
                format!("{shown} of {tasks} {verb} `{of}` in the stack,")
            }
        };
        // Writing to a String cannot fail.
        let _ = write!(title, " in {runtimes} of process {}", self.pid);
        if self.snapshots > 1 {
            let snapshots = self.snapshots;
            let _ = write!(title, "; {snapshots} snapshots in {:.1} s", self.seconds);
        }
        title
    }
}

impl Group {
    /// Returns how many tasks it has and in which state, in a line without their future.
    pub fn title(&self) -> String {
        let state = match self.state {
            State::Waiting => "waiting",
            State::Ready => "ready: woken, and not yet polled",
            State::Running => "running",
            State::Finished => "finished, and its result not taken",
            State::Unknown => "in an unknown state",
        };
        let noun = if self.in_block_on { "future" } else { "task" };
        let place = if self.in_block_on {
            " in `block_on`"
        } else {
            ""
        };
        format!("{}{place}, {state}", count(self.count, noun))
    }

    /// Returns how many of its tasks did not move while `snapshots` were taken, in a sentence; none for a single snapshot.
    pub fn stay(&self, snapshots: u32) -> Option<String> {
        if snapshots < 2 || self.state != State::Waiting {
            return None;
        }
        Some(match self.stayed {
            0 => format!("no task stayed here in all {snapshots} snapshots"),
            all if all == self.count => format!("here in all {snapshots} snapshots"),
            some => format!("{some} of them here in all {snapshots} snapshots"),
        })
    }

    /// Returns whether its tasks are those of the debug endpoints, where they were spawned, and since when they are ready, as
    /// far as tokio notes it: in sentences without their ends.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.of_endpoints {
            notes.push("of the debug endpoints, not of the service".to_owned());
        }
        if !self.spawned_at.is_empty() {
            let lines: Vec<String> = self.spawned_at.iter().map(Line::to_string).collect();
            notes.push(format!("spawned at {}", lines.join(", ")));
        }
        if let Some(seconds) = self.ready_for {
            notes.push(format!("woken up to {:.1} ms before", seconds * 1e3));
        }
        notes
    }

    /// Returns tokio's numbers of its first tasks; in `block_on`, those of their threads.
    pub fn numbers(&self) -> String {
        let (noun, numbers): (_, Vec<String>) = if self.in_block_on {
            ("thread", self.threads.iter().map(i32::to_string).collect())
        } else {
            ("number", self.ids.iter().map(u64::to_string).collect())
        };
        let first = numbers.get(..MOST_NUMBERS).unwrap_or(&numbers).join(", ");
        let more = if numbers.len() > MOST_NUMBERS {
            ", …"
        } else {
            ""
        };
        format!("{noun} {first}{more}")
    }
}

impl Group {
    fn write(&self, f: &mut Formatter<'_>, snapshots: u32) -> fmt::Result {
        let (title, future) = (self.title(), shortened(&self.future));
        writeln!(f, "{title}: {future} ({})", self.numbers())?;
        if let Some(stay) = self.stay(snapshots) {
            writeln!(f, "  {stay}")?;
        }
        for note in self.notes() {
            writeln!(f, "  {note}")?;
        }
        if let Some(begins) = self.begins.as_ref().filter(|_| self.stack.is_empty()) {
            writeln!(f, "  begins at {begins}")?;
        }
        for level in &self.stack {
            let indent = "  ".repeat(level.indent + 1);
            writeln!(f, "{indent}{}", level.frame)?;
            for wait in &level.waits {
                writeln!(f, "{indent}  waits for {wait}")?;
            }
            for holds in &level.holds {
                writeln!(f, "{indent}  {holds}")?;
            }
        }
        for not_seen in &self.not_seen {
            writeln!(f, "  not seen: {not_seen}")?;
        }
        Ok(())
    }
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
        f.write_str(stage_in_words(self.stage))
    }
}

impl WaitsFor {
    /// Returns what is waited for, with the other end of its socket.
    pub(crate) fn phrase(&self) -> String {
        match &self.peer {
            Some(peer) => format!("{} ({peer})", self.waits_for),
            None => self.waits_for.clone(),
        }
    }
}

impl Display for WaitsFor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrase())?;
        if self.is_given {
            f.write_str(", and has it")?;
        }
        Ok(())
    }
}

impl Display for Holds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verb = if self.is_certain { "holds" } else { "may hold" };
        let Self {
            holds,
            variable,
            type_name,
            ..
        } = self;
        write!(f, "{verb} {holds} (`{variable}`, a {type_name})")
    }
}

impl TaskRef {
    /// Returns its number and future.
    pub fn name(&self) -> String {
        format!("{} ({})", self.number(), shortened(&self.future))
    }

    /// Returns its number, or that of its thread.
    pub(crate) fn number(&self) -> String {
        match self.thread {
            Some(thread) if self.in_block_on => {
                format!("`block_on` of thread {thread}")
            }
            _ => format!("task {}", self.id),
        }
    }

    /// Returns what it does itself, as a clause; empty if that is not known.
    pub fn then(&self) -> String {
        match (self.state, &self.waits_for[..]) {
            (State::Waiting, []) | (State::Unknown, _) => String::new(),
            (State::Waiting, [wait]) => format!("; it waits for {wait}"),
            (State::Waiting, [wait, ..]) => format!("; it waits for {wait}, and more"),
            (State::Ready, _) => "; it is ready".to_owned(),
            (State::Running, _) => "; it is running".to_owned(),
            (State::Finished, _) => "; it has finished".to_owned(),
        }
    }
}

impl Wanted {
    /// Returns how many tasks wait for it, where, and how many of them did not move while `snapshots` were taken: a sentence
    /// without its end.
    pub fn waiting(&self, snapshots: u32) -> String {
        let verb = if self.waiters == 1 { "waits" } else { "wait" };
        let tasks = count(self.waiters, "task");
        let mut waiting = format!("{tasks} {verb} for {}", self.waits_for);
        if !self.lines.is_empty() {
            let lines: Vec<String> = self.lines.iter().map(Line::to_string).collect();
            waiting.push_str(" at ");
            waiting.push_str(&lines.join(", "));
        }
        if snapshots > 1 {
            let stayed = match self.stayed {
                0 => "none of them".to_owned(),
                all if all == self.waiters => "all".to_owned(),
                some => some.to_string(),
            };
            // Writing to a String cannot fail.
            let _ = write!(waiting, ", {stayed} in all {snapshots} snapshots");
        }
        waiting
    }

    /// Returns who has it: each holder as a sentence without its end.
    pub fn who(&self, snapshots: u32) -> Vec<String> {
        let holders = self.holders.iter().map(|holder| holder.sentence(snapshots));
        let task = self.task.iter();
        let end = match &self.chain[..] {
            [_, .., last] => Some(format!(
                "the chain of waits ends at {}{}",
                last.name(),
                last.then()
            )),
            _ => None,
        };
        holders
            .chain(task.map(|task| format!("it is {}{}", task.name(), task.then())))
            .chain(end)
            .collect()
    }
}

impl Holder {
    /// Returns what it holds and where it is, as a sentence without its end.
    pub fn sentence(&self, snapshots: u32) -> String {
        let mut sentence = format!("{} {}", self.task.number(), self.value);
        // Writing to a String cannot fail.
        if let Some(line) = &self.line {
            let _ = write!(sentence, ", suspended at {line}");
            let stayed = self.task.stayed;
            if snapshots > 1 && stayed > 0 {
                let _ = write!(sentence, " in {stayed} of {snapshots} snapshots");
            }
        }
        if self.is_aside {
            sentence.push_str(", in a future that is kept and not polled");
        }
        sentence.push_str(&self.task.then());
        sentence
    }
}

impl Deadlock {
    /// Returns how many tasks it is of, in a line.
    pub fn title(&self) -> String {
        let word = if self.is_certain {
            "Deadlock"
        } else {
            "Probable deadlock"
        };
        match self.links.len() {
            1 => format!("{word}: a task waits for itself"),
            several => format!("{word}: {several} tasks wait for each other in a circle"),
        }
    }
}

impl Display for Deadlock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.title())?;
        for link in &self.links {
            write!(f, "\n  {link}")?;
            for holder in &link.held_by {
                let Holds {
                    variable,
                    type_name,
                    ..
                } = &holder.value;
                let holder = holder.task.number();
                write!(f, "\n    held by {holder}: `{variable}`, a {type_name}")?;
            }
        }
        Ok(())
    }
}

impl Display for Link {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for {}", self.task.name(), self.waits_for)?;
        if let Some(line) = &self.line {
            write!(f, " at {line}")?;
        }
        Ok(())
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
