//! Threads of `SQLite` sleep until another connection has written. Requests only seem to wait for an answer.

use ecosystem::PartMeaning;

use crate::evidence::Evidence;
use crate::finding::{Finding, Words};
use crate::threads::seen::passes;
use crate::threads::{Stack, State};
use crate::thresholds::{THREAD_QUEUE, THREAD_QUEUE_WEIGHT};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let Some(profile) = &evidence.threads else {
        return Vec::new();
    };
    finding(profile.stacks(), profile.moments)
        .into_iter()
        .collect()
}

fn finding<'a>(all: impl Iterator<Item = &'a Stack>, moments: u64) -> Option<Finding> {
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
    if threads < THREAD_QUEUE {
        return None;
    }
    let (cause, fix) = if of_readers * 2 > asleep {
        (
            "The rollback journal lets nobody read while another connection writes.",
            "Set `journal_mode = WAL`, which does.",
        )
    } else {
        (
            "SQLite has one writer at a time. Each statement outside of a transaction waits for the disk, or a transaction that \
             writes awaits something else.",
            "Write several rows in one transaction, from one task if you can, and commit before it awaits anything but the \
             database. In WAL mode, `synchronous = NORMAL` syncs more seldom, and may lose the last commits when the power fails.",
        )
    };
    let words = Words {
        headline: format!(
            "{threads:.1} threads of SQLite sleep at any time until another connection has written."
        ),
        seen: "Requests seem to wait for an answer, and keep their connections.".to_owned(),
        cause: cause.to_owned(),
        fix: fix.to_owned(),
    };
    let see = "/debug/threads?all=true";
    Some(Finding::fault("database", THREAD_QUEUE_WEIGHT, see, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_sqlites_writer_is_told_from_who_writes() {
        let reads = "sqlite3PagerSharedLock";
        let sleeps = |samples, wants| {
            let functions = ["sqlite3_step", wants, "sqlite3InvokeBusyHandler"];
            Stack::of(samples, State::Blocked, &functions)
        };
        let works = Stack::of(900, State::Running, &["sqlite3_step"]);
        let seen = [sleeps(150, reads), sleeps(30, "btreeBeginTrans"), works];
        let says = |stacks: &[Stack]| finding(stacks.iter(), 100).map(|finding| finding.says);
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
