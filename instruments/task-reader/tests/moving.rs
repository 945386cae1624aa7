//! A lock whose holder is another in each snapshot.

mod common;

use common::{Profile, Program};
use task_reader::{Binary, Certainty, Index, Reader};

/// Snapshots that are looked at.
const SNAPSHOTS: usize = 20;

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
#[cfg(target_arch = "x86_64")]
fn the_holder_of_a_lock_that_moves_on_holds_it() {
    common::once_in_three(holds_it);
}

#[cfg(target_arch = "x86_64")]
fn holds_it() {
    let program = Program::start("moving", Profile::Release);
    let binary = Binary::of_process(program.pid()).unwrap();
    let index = Index::new(&binary).unwrap();
    let reader = Reader::new(&index);
    let mut holders = Vec::new();
    for _ in 0..SNAPSHOTS {
        let snapshot = reader.snapshot(program.pid()).unwrap();
        let lock = snapshot.resources.first().expect("tasks wait for the lock");
        // While a thread polls the holder, it is not known.
        for (task, hold) in &lock.holders {
            let task = &snapshot.tasks[*task];
            let hold = &task.holds[*hold];
            assert_eq!(hold.certainty, Certainty::Agreed, "{snapshot}");
            assert_eq!(
                hold.line.as_ref().map(|line| line.line),
                Some(program.line("holds"))
            );
            holders.push(task.id);
        }
    }
    holders.sort_unstable();
    holders.dedup();
    assert!(holders.len() > 1, "the lock has the holders {holders:?}");
}
