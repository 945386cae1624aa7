//! Connections of a server, which poll the bodies that they send.

mod common;

use common::{Profile, Program};
use task_reader::Stage;

#[test]
#[ignore = "compiles a server, which takes minutes"]
fn weekly_bodies_of_answers() {
    for profile in [Profile::Debug, Profile::Release] {
        let program = Program::start("bodies", profile);
        let snapshot = program.snapshot();
        println!("{snapshot}");
        let connections = snapshot.tasks.iter();
        let connections =
            connections.filter(|task| task.future == "bodies::connection" && task.id != 0);
        let mut kinds = Vec::new();
        for task in connections {
            let [wait] = &task.waits[..] else {
                panic!("{task:?}");
            };
            kinds.push(wait.kind);
            if wait.kind == "timer" {
                let line = wait.line.as_ref().map(|line| line.line);
                assert_eq!(line, Some(program.line("piece")));
                let mut frames = task.frames.iter();
                let piece = frames
                    .find(|frame| frame.future == "bodies::piece")
                    .unwrap();
                assert_eq!(piece.stage, Stage::Suspended);
            }
        }
        kinds.sort_unstable();
        assert_eq!(kinds, ["body", "network", "network", "timer"]);
    }
}
