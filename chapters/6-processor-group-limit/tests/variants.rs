//! Facts on which the chapter's prediction and its stages rest, beside the claims that `check` and `prove` judge.

use children::cpus;
use course::bench::server::{Server, ServerError};
use course::bench::testing::{self, count, post};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter6");

/// Puts a server under the load of three users a CPU who never pause, for a second.
fn load(server: &Server) {
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    let users = post("/check", &letter, "false").by(3 * cpus::count());
    testing::load(server, &users);
}

// Elsewhere a thread does not inherit where it may run.
#[cfg(target_os = "linux")]
#[test]
fn one_cpu_works_in_the_problem_and_all_in_the_others_and_in_problems_side_by_side() {
    let usable = u64::from(cpus::count());
    // A quota may allow less, where these tests run in a container.
    let counted = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    for (variant, arguments, expected) in [
        ("problem", &[] as &[&str], 1),
        ("problem", &["--side-by-side"], usable),
        ("problem", &["--cpus", "1"], 1),
        ("all-processors", &[], usable),
        ("all-processors", &["--cpus", "1"], 1),
        ("local-runtime", &[], counted),
        ("container-problem", &[], usable),
        ("container-solution", &[], counted),
        ("container-solution", &["--cpus", "1"], 1),
    ] {
        let arguments = [&["--texts", "200000"], arguments].concat();
        let server = testing::start(PROGRAM, variant, 0, &arguments);
        // Where they ran is for other processes to decide, too.
        let seen = || ["scan_workers", "scan_cpus_allowed"].map(|metric| count(&server, metric));
        // On a busy machine a worker may have nothing to do for a second.
        for _ in 0..3 {
            load(&server);
            if seen() == [expected; 2] {
                break;
            }
        }
        assert_eq!(seen(), [expected; 2], "{variant} {arguments:?}");
    }
}

#[test]
fn the_exercise_in_a_container_is_shipped_with_the_problems_code() {
    let code = |text: &'static str| text.split_once("\nuse ").map(|(_, code)| code.to_owned());
    assert_eq!(
        code(include_str!("../src/container/exercise.rs")),
        code(include_str!("../src/container/problem.rs")),
        "`git checkout chapters/6-processor-group-limit/src/container` puts it back"
    );
}

#[test]
fn a_data_set_that_does_not_fit_is_refused_before_anything_listens() {
    match testing::launch(PROGRAM, "solution", 0, &["--texts", "1000000000000"]) {
        Err(ServerError::Ended { stderr, .. }) => {
            assert!(stderr.contains("ask for fewer with --texts"), "{stderr}");
        }
        other => panic!("it ought to end: {other:?}"),
    }
}
