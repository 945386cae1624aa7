//! A process whose reader is killed at any moment goes on.

mod common;

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{Profile, Program};

/// Kills at growing delays.
const KILLS: u64 = 50;

/// Looks at threads that are still stopped: a minute.
const LOOKS: u32 = 6000;

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn no_thread_stays_stopped() {
    let program = Program::start("deadlocks", Profile::Debug);
    let build = Command::new(env!("CARGO"))
        .args(["build", "--example", "tasks"])
        .status();
    assert!(build.unwrap().success(), "the example does not compile");
    let tests = std::env::current_exe().unwrap();
    let reader = tests.ancestors().nth(2).unwrap().join("examples/tasks");
    for kill in 0..KILLS {
        let mut reader = Command::new(&reader);
        let pid = program.pid().to_string();
        let mut reader = reader
            .args(["--pid", &pid])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(kill * 3));
        let _ = reader.kill();
        reader.wait().unwrap();
        // Its child, which has stopped them, ends a moment after it.
        let mut stopped = common::stopped(program.pid());
        let mut looks = 0;
        while !stopped.is_empty() && looks < LOOKS {
            thread::sleep(Duration::from_millis(10));
            stopped = common::stopped(program.pid());
            looks += 1;
        }
        assert!(stopped.is_empty(), "stopped after kill {kill}: {stopped:?}");
    }
    // Seven tasks, and the future of `main`.
    assert_eq!(program.snapshot().tasks.len(), 8);
}
