//! Threads of `SQLite` sleep until another connection has written. Requests only seem to wait for an answer.

use ecosystem::PartMeaning;

use super::table;
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::passes;
use crate::threads::{Stack, State};
use crate::thresholds::THREAD_QUEUE;

/// Threads of `SQLite` that sleep until another connection has written.
pub(crate) struct Asleep {
    /// Threads at any time, on average.
    threads: f64,
    /// True if most of them want to read.
    are_readers: bool,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<Asleep> {
    let profile = facts.evidence.threads.as_deref()?;
    asleep(profile.stacks(), profile.moments)
}

fn asleep<'a>(all: impl Iterator<Item = &'a Stack>, moments: u64) -> Option<Asleep> {
    let (mut asleep, mut of_readers) = (0, 0);
    for stack in all {
        if stack.state == State::Blocked && passes(stack, PartMeaning::SqliteBusy) {
            asleep += stack.samples;
            if passes(stack, PartMeaning::SqliteRead) {
                of_readers += stack.samples;
            }
        }
    }
    let threads = asleep as f64 / moments.max(1) as f64;
    (threads >= THREAD_QUEUE).then_some(Asleep {
        threads,
        are_readers: of_readers * 2 > asleep,
    })
}

impl Sighting for Asleep {
    fn row(&self) -> &'static Row {
        if self.are_readers {
            table::SQLITE_JOURNAL
        } else {
            table::SQLITE_WRITER
        }
    }

    fn headline(&self) -> String {
        format!(
            "{:.1} threads of SQLite sleep at any time until another connection has written.",
            self.threads
        )
    }

    fn seen(&self) -> String {
        "Requests seem to wait for an answer, and keep their connections.".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::told;

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
            told(asleep(stacks.iter(), 100))
                .pop()
                .map(|finding| finding.says)
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
}
