//! Threads of `SQLite` sleep until another connection has written. Requests only seem to wait for an answer.

use super::table;
use crate::facts::{Facts, SqliteSleeps};
use crate::finding::{Row, Sighting};

pub(crate) fn check(facts: &Facts<'_>) -> Option<SqliteSleeps> {
    facts.sqlite_sleeps
}

impl Sighting for SqliteSleeps {
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
            told(SqliteSleeps::of(stacks.iter(), 100))
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
