//! Meaning of types: the tables of `kinds.md`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A path of fields, by their names.
pub(crate) type FieldPath = Vec<&'static str>;

/// A future that waits for something.
#[derive(Debug)]
pub(crate) struct Wait {
    /// Word for programs.
    pub(crate) kind: &'static str,
    pub(crate) waits_for: &'static str,
    pub(crate) resource: Option<FieldPath>,
    /// Amounts that the waiter wants of it, and that are left of this.
    pub(crate) has: Option<(FieldPath, FieldPath)>,
}

/// A set of futures in a list.
#[derive(Debug)]
pub(crate) struct Set {
    /// First elements of its lists.
    pub(crate) first: Vec<FieldPath>,
    pub(crate) next: FieldPath,
    pub(crate) item: FieldPath,
}

/// A type whose values hold a resource.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) holds: &'static str,
    pub(crate) resource: FieldPath,
    /// Field that is zero in a value which holds nothing any more.
    pub(crate) live_if: Option<FieldPath>,
    pub(crate) out: Option<Out>,
    /// Amount that the resource has left, for a value of which `live_if` is an amount.
    pub(crate) left: Option<Out>,
}

/// Number of values that hold a resource, by the resource's own state: `most - field / divisor`, `field`, or `most`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Out {
    most: Option<u64>,
    field: Option<FieldPath>,
    divisor: u64,
}

impl Out {
    /// Returns the number of holders, if `read` gives the state that it depends on.
    pub(crate) fn count(&self, read: impl FnOnce(&FieldPath) -> Option<u64>) -> Option<u64> {
        let state = match &self.field {
            Some(field) => Some(read(field)? / self.divisor),
            None => None,
        };
        match (self.most, state) {
            (Some(most), Some(state)) => Some(most.saturating_sub(state)),
            (most, state) => most.or(state),
        }
    }

    fn parse(cell: &'static str) -> Option<Self> {
        let (most, state) = match cell.split_once(" - ") {
            Some((most, state)) => (most.parse().ok(), state),
            None if cell.starts_with('`') => (None, cell),
            None => {
                return cell.parse().ok().map(|most| Self {
                    most: Some(most),
                    field: None,
                    divisor: 1,
                });
            }
        };
        let (field, divisor) = state.split_once(" / ").unwrap_or((state, "1"));
        Some(Self {
            most,
            field: field_path(field),
            divisor: divisor.parse().ok().filter(|divisor| *divisor > 0)?,
        })
    }
}

/// All tables.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    waits: HashMap<&'static str, Wait>,
    deadlines: HashMap<&'static str, FieldPath>,
    sets: HashMap<&'static str, Set>,
    owners: HashMap<&'static str, FieldPath>,
    handles: HashMap<&'static str, FieldPath>,
    holders: HashMap<&'static str, Holder>,
}

/// The tables of `kinds.md`.
pub(crate) static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds::parse(include_str!("kinds.md")));

impl Kinds {
    fn parse(text: &'static str) -> Self {
        let (mut kinds, mut section) = (Self::default(), "");
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                section = title;
            }
            let Some(row) = line.strip_prefix("| `") else {
                continue;
            };
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let path = cells.first().map_or("", |path| path.trim_end_matches('`'));
            match (section, &cells[..]) {
                ("Waits", [_, kind, waits_for, resource, has, ..]) => {
                    let has = has.split_once(" - ");
                    let has =
                        has.and_then(|(wants, left)| Some((field_path(wants)?, field_path(left)?)));
                    kinds.waits.insert(
                        path,
                        Wait {
                            kind,
                            waits_for,
                            resource: field_path(resource),
                            has,
                        },
                    );
                }
                ("Deadlines", [_, timer, ..]) => {
                    kinds
                        .deadlines
                        .extend(field_path(timer).map(|timer| (path, timer)));
                }
                ("Sets", [_, first, next, item, ..]) => {
                    let first = first.split(", ").filter_map(field_path).collect();
                    if let (Some(next), Some(item)) = (field_path(next), field_path(item)) {
                        kinds.sets.insert(path, Set { first, next, item });
                    }
                }
                ("Owners", [_, list, ..]) => {
                    let list = field_path(list);
                    kinds.owners.extend(list.map(|list| (path, list)));
                }
                ("Handles", [_, task, ..]) => {
                    let task = field_path(task);
                    kinds.handles.extend(task.map(|task| (path, task)));
                }
                ("Holders", [_, holds, resource, live_if, out, left, ..]) => {
                    let Some(resource) = field_path(resource) else {
                        continue;
                    };
                    let (live_if, out, left) =
                        (field_path(live_if), Out::parse(out), Out::parse(left));
                    kinds.holders.insert(
                        path,
                        Holder {
                            holds,
                            resource,
                            live_if,
                            out,
                            left,
                        },
                    );
                }
                _ => {}
            }
        }
        kinds
    }

    /// Returns the row for a future, or for the innermost module around it.
    pub(crate) fn wait(&self, path: &str) -> Option<&Wait> {
        let mut path = path;
        loop {
            if let Some(wait) = self.waits.get(path) {
                return Some(wait);
            }
            (path, _) = path.rsplit_once("::")?;
        }
    }

    /// Returns the field with the timer of a future that limits another wait.
    pub(crate) fn timer(&self, path: &str) -> Option<&'static str> {
        self.deadlines.get(path)?.first().copied()
    }

    pub(crate) fn set(&self, path: &str) -> Option<&Set> {
        self.sets.get(path)
    }

    /// Returns the field with the list of the tasks that a future polls.
    pub(crate) fn tasks(&self, path: &str) -> Option<&FieldPath> {
        self.owners.get(path)
    }

    /// Returns the field with the task whose result a value can take.
    pub(crate) fn handle(&self, path: &str) -> Option<&FieldPath> {
        self.handles.get(path)
    }

    pub(crate) fn holder(&self, path: &str) -> Option<&Holder> {
        self.holders.get(path)
    }
}

fn field_path(cell: &'static str) -> Option<FieldPath> {
    let path = cell.strip_prefix('`')?.strip_suffix('`')?;
    Some(path.split('.').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        let rows = include_str!("kinds.md")
            .lines()
            .filter(|line| line.starts_with("| `"))
            .count();
        assert_eq!(
            KINDS.waits.len()
                + KINDS.deadlines.len()
                + KINDS.sets.len()
                + KINDS.owners.len()
                + KINDS.handles.len()
                + KINDS.holders.len(),
            rows
        );
    }

    #[test]
    fn a_lock_without_permits_has_one_holder() {
        let guard = KINDS.holder("tokio::sync::mutex::MutexGuard").unwrap();
        let out = guard.out.as_ref().unwrap();
        assert_eq!(out.count(|_| Some(0)), Some(1));
        // The lowest bit says that the semaphore is closed.
        assert_eq!(out.count(|_| Some(1)), Some(1));
        assert_eq!(out.count(|_| Some(2)), Some(0));
        assert_eq!(out.count(|_| None), None);
    }

    #[test]
    fn a_type_within_a_module_of_the_table_is_found() {
        assert_eq!(
            KINDS.wait("tokio::io::util::read::Read").unwrap().kind,
            "network"
        );
        assert!(KINDS.wait("shop::io::util").is_none());
    }
}
