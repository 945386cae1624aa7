//! Threads of `SQLite` sleep until another connection has written. Requests only seem to wait for an answer.

use std::collections::HashMap;

use ecosystem::WaitKind;

use super::table;
use crate::evidence::{Step, StepKind, Tasks};
use crate::facts::{Facts, SqliteSleeps};
use crate::finding::{Row, Sighting};
use crate::followed::thing;

/// Threads of `SQLite` that sleep until another connection has written.
pub(crate) struct Asleep<'a> {
    sleeps: SqliteSleeps,
    /// A task that keeps a connection meanwhile and waits for something else than the database.
    keeps: Option<&'a Step>,
}

pub(crate) fn check<'a>(facts: &'a Facts<'_>) -> Option<Asleep<'a>> {
    let sleeps = facts.sqlite_sleeps?;
    let tasks = facts.evidence.tasks.as_ref();
    Some(Asleep {
        sleeps,
        keeps: tasks.and_then(keeps),
    })
}

/// Returns the holder of a pool's connection that most waits lead to, of those that wait for something else than the database.
fn keeps(tasks: &Tasks) -> Option<&Step> {
    let mut seen: HashMap<&Step, f64> = HashMap::new();
    for way in &tasks.ways {
        let [first, holder, ..] = &way.steps[..] else {
            continue;
        };
        let is_of_database = [WaitKind::Database, WaitKind::Pool]
            .iter()
            .any(|kind| holder.kind == StepKind::Of(*kind));
        if first.kind == StepKind::Of(WaitKind::Pool) && !is_of_database {
            *seen.entry(holder).or_default() += way.seen;
        }
    }
    let most = seen.into_iter().max_by(|one, other| {
        let by_place = || other.0.cmp(one.0);
        one.1.total_cmp(&other.1).then_with(by_place)
    });
    most.map(|(holder, _)| holder)
}

impl Sighting for Asleep<'_> {
    fn row(&self) -> &'static Row {
        if self.sleeps.are_readers {
            table::SQLITE_JOURNAL
        } else {
            table::SQLITE_WRITER
        }
    }

    fn headline(&self) -> String {
        format!(
            "{:.1} threads of SQLite sleep at any time until another connection has written.",
            self.sleeps.threads
        )
    }

    fn seen(&self) -> String {
        let seen = "Requests seem to wait for an answer, and keep their connections.";
        let Some(holder) = self.keeps else {
            return seen.to_owned();
        };
        let what = holder.holds.as_deref().unwrap_or("a connection");
        format!(
            "{seen} Kept meanwhile: {what}, at {}, which waits for {}.",
            holder.place(),
            thing(holder)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Way;
    use crate::rules::told;
    use crate::threads::{Stack, State};

    #[test]
    fn who_waits_for_sqlites_writer_is_told_from_who_writes() {
        let reads = "sqlite3PagerSharedLock";
        let sleeps = |samples, wants| {
            let functions = ["sqlite3_step", wants, "sqlite3InvokeBusyHandler"];
            Stack::of(samples, State::Blocked, &functions)
        };
        let works = Stack::of(900, State::Running, &["sqlite3_step"]);
        let seen = [sleeps(150, reads), sleeps(30, "btreeBeginTrans"), works];
        let says = |stacks: &[Stack]| {
            let sleeps = SqliteSleeps::of(stacks.iter(), 100)?;
            let found = Asleep {
                sleeps,
                keeps: None,
            };
            told([found]).pop().map(|finding| finding.says)
        };
        let readers = says(&seen).expect("1.8 threads");
        assert!(
            readers.starts_with("1.8 threads of SQLite sleep"),
            "{readers}"
        );
        assert!(readers.contains("journal_mode = WAL"), "{readers}");
        let writers = says(&[sleeps(300, "btreeBeginTrans")]).expect("3 threads");
        assert!(writers.contains("one writer at a time"), "{writers}");
        assert_eq!(says(&seen[1..]), None);
    }

    #[test]
    fn whoever_keeps_a_connection_while_it_asks_somebody_else_is_told() {
        let step = |at: &str, kind, holds: Option<&str>| Step {
            at: Some(at.to_owned()),
            kind: StepKind::Of(kind),
            waits_for: "something".to_owned(),
            holds: holds.map(str::to_owned),
            ..Step::default()
        };
        let pool = || step("shop::insert (src/write.rs:9)", WaitKind::Pool, None);
        let writes = step("shop::insert (src/write.rs:9)", WaitKind::Database, None);
        let asks = step(
            "shop::notify (src/hook.rs:7)",
            WaitKind::Network,
            Some("`transaction`"),
        );
        let way = |seen, holder| Way {
            seen,
            ends: 1,
            steps: vec![pool(), holder],
        };
        let tasks = Tasks {
            ways: vec![way(90.0, writes), way(10.0, asks.clone())],
            ..Tasks::default()
        };
        assert_eq!(keeps(&tasks), Some(&asks));
    }
}
