//! Meaning of types: what a future waits for, and what a value holds.
//!
//! A path is that of a type or an `async fn` by its place in the source, without its arguments.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::tables::{Row, name, rows};

/// A path of fields, by their names.
pub type FieldPath = Vec<&'static str>;

/// A future that waits for something.
#[derive(Debug)]
pub struct Wait {
    /// Word for programs: a name of [`WaitKind`](crate::WaitKind), or `never`.
    pub kind: &'static str,
    /// The same as a phrase.
    pub waits_for: &'static str,
    /// Lock, channel or the like that it waits for.
    pub resource: Option<FieldPath>,
    /// Amounts that the waiter wants of it, and that are left of this.
    pub has: Option<(FieldPath, FieldPath)>,
}

/// A set of futures in a list.
#[derive(Debug)]
pub struct Set {
    /// First elements of its lists.
    pub first: Vec<FieldPath>,
    /// Next element, from an element.
    pub next: FieldPath,
    /// Future, from an element.
    pub item: FieldPath,
    /// Number of its tasks.
    pub number: Option<FieldPath>,
}

/// A type whose values hold a resource.
#[derive(Debug)]
pub struct Holder {
    /// Kind of the held value, as a phrase.
    pub holds: &'static str,
    /// Lock, channel or the like that it holds.
    pub resource: FieldPath,
    /// Field that is zero in a value which holds nothing any more.
    pub live_if: Option<FieldPath>,
    /// Number of such values, by the resource's own state.
    pub out: Option<Out>,
    /// Amount that the resource has left, for a value of which `live_if` is an amount.
    pub left: Option<Out>,
}

/// Number of values that hold a resource, by the resource's own state: `most - field / divisor`, `field`, or `most`.
#[derive(Debug, PartialEq, Eq)]
pub struct Out {
    most: Option<u64>,
    field: Option<FieldPath>,
    divisor: u64,
}

impl Out {
    /// Returns the number of holders, if `read` gives the state that it depends on.
    pub fn count(&self, read: impl FnOnce(&FieldPath) -> Option<u64>) -> Option<u64> {
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

type Table<T> = LazyLock<HashMap<&'static str, T>>;

static WAITS: Table<Wait> = Table::new(|| {
    read("Types that wait", |cells| {
        let [_, kind, waits_for, resource, has] = cells[..] else {
            return None;
        };
        let has = has.split_once(" - ");
        Some(Wait {
            kind,
            waits_for,
            resource: field_path(resource),
            has: has.and_then(|(wants, left)| Some((field_path(wants)?, field_path(left)?))),
        })
    })
});

static TIMERS: Table<Vec<&'static str>> = Table::new(|| {
    read("Types that limit a wait", |cells| {
        Some(cells.get(1)?.split(", ").map(name).collect())
    })
});

static SETS: Table<Set> = Table::new(|| {
    read("Types that poll a list", |cells| {
        let [_, first, next, item, number] = cells[..] else {
            return None;
        };
        Some(Set {
            first: first.split(", ").filter_map(field_path).collect(),
            next: field_path(next)?,
            item: field_path(item)?,
            number: field_path(number),
        })
    })
});

static OWNERS: Table<FieldPath> = Table::new(|| {
    read("Types that poll tasks of their own", |cells| {
        field_path(cells.get(1)?)
    })
});

static HANDLES: Table<FieldPath> = Table::new(|| {
    read("Types that take the result of a task", |cells| {
        field_path(cells.get(1)?)
    })
});

static HOLDERS: Table<Holder> = Table::new(|| {
    read("Types that hold", |cells| {
        let [_, holds, resource, live_if, out, left] = cells[..] else {
            return None;
        };
        Some(Holder {
            holds,
            resource: field_path(resource)?,
            live_if: field_path(live_if),
            out: Out::parse(out),
            left: Out::parse(left),
        })
    })
});

/// Returns what a future waits for: the row for its path, or for the innermost module around it.
pub fn wait(path: &str) -> Option<&'static Wait> {
    let mut path = path;
    loop {
        if let Some(wait) = WAITS.get(path) {
            return Some(wait);
        }
        (path, _) = path.rsplit_once("::")?;
    }
}

/// Returns whether a type has a row of its own, as what a future waits for.
pub fn waits(path: &str) -> bool {
    WAITS.contains_key(path)
}

/// Returns the fields with the timers of a future that limits another wait.
pub fn timers(path: &str) -> &'static [&'static str] {
    TIMERS.get(path).map_or(&[], Vec::as_slice)
}

/// Returns how the futures of a set are found.
pub fn set(path: &str) -> Option<&'static Set> {
    SETS.get(path)
}

/// Returns the field with the list of the tasks that a future polls.
pub fn tasks(path: &str) -> Option<&'static FieldPath> {
    OWNERS.get(path)
}

/// Returns the field with the task whose result a value can take.
pub fn handle(path: &str) -> Option<&'static FieldPath> {
    HANDLES.get(path)
}

/// Returns what values of a type hold.
pub fn holder(path: &str) -> Option<&'static Holder> {
    HOLDERS.get(path)
}

fn read<T>(heading: &str, row: fn(&Row) -> Option<T>) -> HashMap<&'static str, T> {
    let mut types = HashMap::new();
    for cells in rows(heading) {
        if let (Some(path), Some(of)) = (cells.first(), row(&cells)) {
            types.insert(name(path), of);
        }
    }
    types
}

fn field_path(cell: &'static str) -> Option<FieldPath> {
    let path = cell.strip_prefix('`')?.strip_suffix('`')?;
    Some(path.split('.').collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits;

    #[test]
    fn every_row_is_read() {
        for (heading, read) in [
            ("Types that wait", WAITS.len()),
            ("Types that limit a wait", TIMERS.len()),
            ("Types that poll a list", SETS.len()),
            ("Types that poll tasks of their own", OWNERS.len()),
            ("Types that take the result of a task", HANDLES.len()),
            ("Types that hold", HOLDERS.len()),
        ] {
            assert_eq!(rows(heading).len(), read, "{heading}");
        }
    }

    #[test]
    fn kinds_are_those_of_waits() {
        for (path, wait) in WAITS.iter() {
            let mut kinds = waits().iter().map(|row| row.wait.kind.name());
            assert!(
                wait.kind == "never" || kinds.any(|kind| kind == wait.kind),
                "{path}: {}",
                wait.kind
            );
        }
    }

    #[test]
    fn a_lock_without_permits_has_one_holder() {
        let guard = holder("tokio::sync::mutex::MutexGuard").unwrap();
        let out = guard.out.as_ref().unwrap();
        assert_eq!(out.count(|_| Some(0)), Some(1));
        // The lowest bit says that the semaphore is closed.
        assert_eq!(out.count(|_| Some(1)), Some(1));
        assert_eq!(out.count(|_| Some(2)), Some(0));
        assert_eq!(out.count(|_| None), None);
    }

    #[test]
    fn a_type_within_a_module_of_the_table_is_found() {
        assert_eq!(wait("tokio::io::util::read::Read").unwrap().kind, "network");
        assert!(wait("shop::io::util").is_none());
    }
}
