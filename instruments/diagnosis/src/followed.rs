//! Waits of tasks, followed to their end: from what is waited for to its holder, to the holder's own wait, and so on.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Line, Step, StepKind, Tasks, Way};
use crate::thresholds::{LINES_APART, ONE_HOLDER, WAITERS_OF_ONE};

/// Waits at one line, followed to where most of them end.
pub(crate) struct Followed<'a> {
    /// Waits at once at this line, averaged over the snapshots.
    pub(crate) at_once: f64,
    /// Share of them whose holder is known.
    pub(crate) known: f64,
    /// Share of those with a known holder that end at [`way`](Self::way)'s end.
    pub(crate) share: f64,
    /// Different tasks at the ends, averaged over the snapshots.
    pub(crate) holders: f64,
    /// The most frequent way to that end.
    pub(crate) way: &'a Way,
    pub(crate) end: &'a Step,
}

impl<'a> Followed<'a> {
    /// Follows the waits of this kind at a line of the await profile.
    pub(crate) fn at(tasks: &'a Tasks, kind: WaitKind, line: &Line) -> Option<Self> {
        Self::of(tasks, |step| {
            step.kind == StepKind::Of(kind) && step.line().is_some_and(|at| is_same(&at, line))
        })
    }

    /// Follows the ways that begin at a line with a wait of this kind.
    pub(crate) fn of(tasks: &'a Tasks, is_here: impl Fn(&Step) -> bool) -> Option<Self> {
        let (mut all, mut known, mut holders) = (0.0, 0.0, 0);
        let mut ends: Vec<(&Step, f64, &Way)> = Vec::new();
        for way in &tasks.ways {
            if !way.first().is_some_and(&is_here) {
                continue;
            }
            all += way.seen;
            let Some(end) = way.end() else { continue };
            known += way.seen;
            holders += way.ends;
            let is_same = |other: &Step| other.place() == end.place() && other.kind == end.kind;
            match ends.iter_mut().find(|(other, ..)| is_same(other)) {
                // The most frequent way comes first.
                Some((_, sum, _)) => *sum += way.seen,
                None => ends.push((end, way.seen, way)),
            }
        }
        let (end, seen, way) = ends.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let snapshots = f64::from(tasks.snapshots.max(1));
        Some(Self {
            at_once: all / snapshots,
            known: known / all,
            share: seen / known,
            holders: holders as f64 / snapshots,
            way,
            end,
        })
    }

    /// Returns whether many wait for one.
    pub(crate) fn is_for_one(&self) -> bool {
        self.at_once >= WAITERS_OF_ONE * self.holders
    }

    /// Returns whether there is one holder, and not several that take turns.
    pub(crate) fn is_one(&self) -> bool {
        self.holders <= ONE_HOLDER
    }

    /// Returns whether the end is an answer of a database.
    pub(crate) fn is_statement(&self) -> bool {
        match self.end.wait() {
            Some(wait) => matches!(wait.kind, WaitKind::Database | WaitKind::Network),
            None => self.end.kind == StepKind::Of(WaitKind::Network),
        }
    }
}

/// Waits for permits at a line of which no task has one.
pub(crate) struct Unheld {
    /// Such waits at once, averaged over the snapshots.
    pub(crate) at_once: f64,
    snapshots: u32,
}

impl Unheld {
    /// Returns the waits at a line, unless a task was seen to hold what one of them is for.
    pub(crate) fn at(line: &Line, tasks: &Tasks) -> Option<Self> {
        let mut all = 0.0;
        for way in &tasks.ways {
            let is_here = way.first().is_some_and(|step| {
                step.kind == StepKind::Of(WaitKind::Limit)
                    && step.line().is_some_and(|at| is_same(&at, line))
            });
            if is_here && way.end().is_some() {
                return None;
            }
            if is_here {
                all += way.seen;
            }
        }
        let at_once = all / f64::from(tasks.snapshots.max(1));
        (all > 0.0).then_some(Self {
            at_once,
            snapshots: tasks.snapshots,
        })
    }

    /// Returns what was seen, as a sentence.
    pub(crate) fn seen(&self) -> String {
        format!(
            "In {} snapshots {} tasks at once waited here, and none had a permit.",
            self.snapshots,
            figures::average(self.at_once)
        )
    }
}

/// Returns the thing that a step waits for, as the library calls it.
pub(crate) fn thing(step: &Step) -> String {
    match step.wait() {
        Some(wait) if !wait.thing().is_empty() => wait.thing().to_owned(),
        _ => step.waits_for.clone(),
    }
}

/// Returns whether two lines are one. A statement of several lines may have the number of any of them.
pub(crate) fn is_same(at: &Line, line: &Line) -> bool {
    let is_file = is_end_of(&at.file, &line.file) || is_end_of(&line.file, &at.file);
    let last = |path: &str| {
        let path = path.trim_end_matches("::{{closure}}");
        path.rsplit("::").next().map(str::to_owned)
    };
    let is_near =
        last(&at.function) == last(&line.function) && at.line.abs_diff(line.line) <= LINES_APART;
    is_file && (at.line == line.line || is_near)
}

/// Returns whether a path is another one without folders in front of it.
fn is_end_of(path: &str, whole: &str) -> bool {
    let before = whole.strip_suffix(path);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Frame;

    #[test]
    fn a_line_is_the_same_in_both_instruments() {
        let same = |at: &str| {
            let line = |text: &str| {
                let Ok(frame) = text.parse::<Frame>();
                frame.line().cloned().expect("a line")
            };
            is_same(&line(at), &line("shop::Tracker::issue (src/issue.rs:51)"))
        };
        assert!(same("shop::issue (web/src/issue.rs:51)"));
        assert!(
            same("shop::issue (web/src/issue.rs:53)"),
            "a statement of several lines"
        );
        assert!(
            same("shop::Tracker::issue::{{closure}} (web/src/issue.rs:53)"),
            "as compilers name it"
        );
        assert!(!same("shop::other (web/src/issue.rs:53)"));
        assert!(!same("shop::issue (src/reissue.rs:51)"));
    }
}
