//! Futures in `block_on` and tasks of a `LocalSet`: their lines, and what they wait for and hold.

mod common;

use common::{Profile, Program};
use task_reader::{Snapshot, Stage, State, Task};

/// Futures in `block_on` that wait, by their functions, with the marks of their lines.
const BLOCKED: &[(&str, &[&str])] = &[
    ("in_current_thread", &["in_current_thread", "forever"]),
    ("by_handle", &["by_handle", "forever"]),
    ("large", &["large", "forever"]),
    ("beside", &["beside", "forever"]),
    ("forever", &["forever"]),
    ("runs_until", &["runs_until", "forever"]),
    ("keeps", &["keeps", "forever"]),
    ("within_worker", &["within_worker", "forever"]),
    ("run::{async block}", &["run", "run_inner", "forever"]),
];

/// Part of the sentence on futures whose places are not known.
const NOT_FOUND: &str = "the program does not say where on the stack";

/// Tasks of a `LocalSet`.
const LOCAL: &[(&str, &[&str])] = &[
    ("local", &["local", "forever"]),
    ("outer_local", &["outer_local"]),
    ("inner_local", &["inner_local", "forever"]),
    ("local_beside", &["local_beside", "forever"]),
    ("alone", &["alone"]),
];

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn debug_build() {
    common::once_in_three(all_are_found);
}

fn all_are_found() {
    let program = Program::start("block_ons", Profile::Debug);
    let snapshot = program.snapshot();
    println!("{snapshot}");
    let wrong = wrong(&program, &snapshot);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Tokio's own future is around some of them.
    for (all, in_block_on) in [(BLOCKED, true), (LOCAL, false)] {
        for (function, marks) in all {
            let is_it = |task: &Task| {
                task.in_block_on == in_block_on && own_lines(task) == lines(&program, marks)
            };
            assert!(snapshot.tasks.iter().any(is_it), "no {function}");
        }
    }
    let computes = |of: &str, function: &str| {
        let mut all = tasks(&snapshot, of);
        let has = |task: &Task| {
            let name = format!("block_ons::{function}");
            task.state == State::Running && task.frames.iter().any(|frame| frame.future == name)
        };
        assert!(all.any(has), "no {function} in {of}");
    };
    computes("computes", "computes");
    computes("main::{closure}::{async block}", "local_computes");
    let kept = "holds a lock (`kept`, a MutexGuard<u64>), suspended at";
    let text = snapshot.to_string();
    let holder = text.lines().find(|line| line.contains(kept));
    assert!(
        holder.is_some_and(|line| line.contains("`block_on` of thread")),
        "{text}"
    );
    assert!(!text.contains(NOT_FOUND), "all futures were seen: {text}");
}

/// What the optimizer leaves of a `block_on` is not always enough to find its future. It is never another one.
#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn weekly_release_build() {
    let program = Program::start("block_ons", Profile::Release);
    let snapshot = program.snapshot();
    println!("{snapshot}");
    let wrong = wrong(&program, &snapshot);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut found = snapshot.tasks.iter().filter(|task| task.in_block_on);
    let has_main = found.any(|task| own_lines(task).contains(&program.line("run_inner")));
    let is_told = snapshot.to_string().contains(NOT_FOUND);
    assert!(has_main || is_told, "{snapshot}");
}

/// Returns what is said of a waiting future or task and is not so.
fn wrong(program: &Program, snapshot: &Snapshot) -> Vec<String> {
    let mut wrong = Vec::new();
    for task in snapshot
        .tasks
        .iter()
        .filter(|task| task.state == State::Waiting)
    {
        let function = task.future.trim_start_matches("block_ons::");
        let expected = BLOCKED
            .iter()
            .chain(LOCAL)
            .filter(|(name, _)| *name == function);
        let mut expected = expected.map(|(_, marks)| lines(program, marks)).peekable();
        let own = own_lines(task);
        if expected.peek().is_some() && !expected.any(|lines| lines == own) {
            wrong.push(format!("{function} is suspended at {own:?}"));
        }
    }
    wrong
}

fn tasks<'s>(snapshot: &'s Snapshot, function: &str) -> impl Iterator<Item = &'s Task> {
    let name = format!("block_ons::{function}");
    snapshot
        .tasks
        .iter()
        .filter(move |task| task.future == name)
}

fn lines(program: &Program, marks: &[&str]) -> Vec<u64> {
    marks.iter().map(|mark| program.line(mark)).collect()
}

/// Returns the lines of the program itself at which a task is suspended.
fn own_lines(task: &Task) -> Vec<u64> {
    let frames = task
        .frames
        .iter()
        .filter(|frame| frame.stage == Stage::Suspended);
    let lines = frames.filter_map(|frame| frame.line.as_ref());
    let own = lines.filter(|line| line.file == "src/bin/block_ons.rs");
    own.map(|line| line.line).collect()
}
