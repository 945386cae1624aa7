//! Connections of pools: who waits for one, and who holds it.

mod common;

use common::{Profile, Program};

#[test]
#[ignore = "compiles three pools, which takes minutes"]
fn weekly_holders_of_connections() {
    for profile in [Profile::Debug, Profile::Release] {
        let program = Program::start("pools", profile);
        let snapshot = program.snapshot();
        println!("{snapshot}");
        for pool in ["deadpool", "bb8", "sqlx"] {
            let waiter = format!("pools::waits_for_{pool}");
            let waiter = snapshot.tasks.iter().find(|task| task.future == waiter);
            let wait = &waiter
                .unwrap_or_else(|| panic!("no task waits for {pool}"))
                .waits[0];
            assert_eq!(
                (wait.kind, wait.waits_for.as_str()),
                ("pool", "a connection of a pool")
            );
            let line = program.line(&format!("waits_for_{pool}"));
            assert_eq!(
                wait.line.as_ref().map(|line| line.line),
                Some(line),
                "{pool}"
            );
            // What bb8's waiters wait for is a notification, which says nothing of a connection.
            if pool == "bb8" {
                continue;
            }
            let resource = &snapshot.resources[wait.resource.expect("the wait is for a resource")];
            let [(task, hold)] = resource.holders[..] else {
                panic!("{pool} has the holders {:?}", resource.holders);
            };
            let (task, hold) = (&snapshot.tasks[task], &snapshot.tasks[task].holds[hold]);
            assert_eq!(task.future, format!("pools::holds_{pool}"));
            let line = program.line(&format!("holds_{pool}"));
            assert_eq!(
                hold.line.as_ref().map(|line| line.line),
                Some(line),
                "{pool}"
            );
        }
    }
}
