//! Four forms of deadlocks: each is named, with the lines of all that are in it.

mod common;

use common::{Profile, Program};

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn all_four_are_named() {
    common::once_in_three(are_named);
}

fn are_named() {
    let program = Program::start("deadlocks", Profile::Debug);
    let snapshot = program.snapshot();
    println!("{snapshot}");
    let mut circles: Vec<Vec<u64>> = Vec::new();
    for circle in &snapshot.circles {
        let tasks = circle.tasks.iter().map(|number| &snapshot.tasks[*number]);
        let mut lines: Vec<u64> = tasks
            .filter_map(|task| Some(task.waits.first()?.line.as_ref()?.line))
            .collect();
        lines.sort_unstable();
        circles.push(lines);
    }
    circles.sort();
    let expected = [
        vec!["first_then_second", "second_then_first"],
        vec!["lock_then_pool", "pool_then_lock"],
        vec!["own_sender"],
        vec!["joins_itself"],
    ];
    let mut expected: Vec<Vec<u64>> = expected
        .iter()
        .map(|marks| marks.iter().map(|mark| program.line(mark)).collect())
        .collect();
    expected.sort();
    assert_eq!(
        circles, expected,
        "the task that waits behind a circle is in none"
    );
}
