//! Tasks that threads poll at the moment: the stack of the thread says where they are.

mod common;

use common::{Profile, Program};
use task_reader::{Stage, State};

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn running_tasks_have_the_stack_of_their_thread() {
    common::once_in_three(have_their_stack);
}

fn have_their_stack() {
    let program = Program::start("running", Profile::Debug);
    let snapshot = program.snapshot();
    println!("{snapshot}");
    for (task, called, mark) in [
        ("busy", "computes", None),
        ("blocked", "blocks", Some("blocks")),
    ] {
        let name = format!("running::{task}");
        let found = snapshot.tasks.iter().find(|task| task.future == name);
        let found = found.unwrap_or_else(|| panic!("no task {name}"));
        assert_eq!(found.state, State::Running);
        assert!(found.thread.is_some());
        let frame = |function: &str| {
            let name = format!("running::{function}");
            found.frames.iter().find(|frame| frame.future == name)
        };
        let line = |function| frame(function).and_then(|frame| Some(frame.line.as_ref()?.line));
        assert_eq!(line(task), Some(program.line(task)), "{:?}", found.frames);
        let own =
            frame(called).unwrap_or_else(|| panic!("no function {called}: {:?}", found.frames));
        assert_eq!(own.stage, Stage::Called);
        if let Some(mark) = mark {
            assert_eq!(line(called), Some(program.line(mark)));
        }
    }
}
