//! Tasks that are ready, tasks that have finished with a result that nobody has taken, and containers of their handles.

mod common;

use std::time::Duration;

use common::{Build, Program};
use task_reader::{Certainty, Snapshot, State, Task};

fn tasks<'s>(snapshot: &'s Snapshot, function: &str) -> Vec<&'s Task> {
    let name = format!("states::{function}");
    let tasks = snapshot.tasks.iter();
    tasks.filter(|task| task.future == name).collect()
}

fn check(program: &Program) -> Snapshot {
    let snapshot = program.snapshot();
    println!("{snapshot}");
    let [woken] = tasks(&snapshot, "woken")[..] else {
        panic!("no task is woken");
    };
    assert_eq!(woken.state, State::Ready);
    for (function, holder, variable) in [
        ("gives", "keeps_result", "kept"),
        ("gives_to_many", "keeps_results", "list"),
    ] {
        let [finished] = tasks(&snapshot, function)[..] else {
            panic!("{function} has finished, and is not told");
        };
        assert_eq!(finished.state, State::Finished);
        let [keeps] = tasks(&snapshot, holder)[..] else {
            panic!("no {holder}");
        };
        let [hold] = &keeps.holds[..] else {
            panic!("{holder} holds {:?}", keeps.holds);
        };
        assert_eq!(hold.certainty, Certainty::Agreed);
        assert_eq!(hold.variable, variable);
        let line = hold.line.as_ref().map(|line| line.line);
        assert_eq!(line, Some(program.line(holder)));
    }
    for (holder, variable, tasks) in [("keeps_results", "list", 1), ("keeps_set", "set", 3)] {
        let [keeps] = self::tasks(&snapshot, holder)[..] else {
            panic!("no {holder}");
        };
        let [set] = &keeps.sets[..] else {
            panic!("{holder} has {:?}", keeps.sets);
        };
        assert_eq!((&*set.variable, set.tasks), (variable, tasks));
    }
    // Their handles are gone, or their results are.
    for function in ["gives_unasked", "gives_to_joiner", "gives_moved"] {
        assert!(tasks(&snapshot, function).is_empty(), "{function}");
    }
    snapshot
}

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn ready_and_finished_tasks_are_told() {
    common::once_in_three(|| {
        let snapshot = check(&Build::new("states").start());
        let notes = |task: &Task| task.spawned_at.is_some() || task.ready_for.is_some();
        assert!(!snapshot.tasks.iter().any(notes));
    });
}

#[test]
#[ignore = "compiles tokio with its unstable features, which takes minutes"]
fn weekly_an_unstable_tokio_tells_who_spawned_a_task_and_since_when_it_is_ready() {
    let program = Build::new("states").flags("--cfg tokio_unstable").start();
    let snapshot = check(&program);
    let woken = tasks(&snapshot, "woken")[0];
    let spawned = woken
        .spawned_at
        .as_ref()
        .map(|line| (&*line.file, line.line));
    assert_eq!(spawned, Some(("src/bin/states.rs", program.line("woken"))));
    assert!(
        woken
            .ready_for
            .is_some_and(|time| time > Duration::from_millis(250)),
        "{woken:?}"
    );
    let text = snapshot.to_string();
    assert!(text.contains("spawned at src/bin/states.rs:"), "{text}");
    assert!(text.contains("woken up to"), "{text}");
}
