//! What a reader relies on: all variants answer alike and scan for every answer, and they differ in
//! how many CPUs work.

use bench::server::{Server, ServerError};
use bench::testing::{self, count as read, post};
use loadgen::cpus;
use measurement::load::Load;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter6");
const STAGES: [&str; 6] = [
    "basic",
    "thread-isolated",
    "problem",
    "exercise",
    "solution",
    "all-processors",
];

fn start(variant: &str, texts: &str) -> Server {
    testing::start(PROGRAM, variant, 0, &["--texts", texts])
}

/// A server of 200,000 texts after three users a CPU who never pause, for a second.
fn under_load(variant: &str) -> Server {
    let server = start(variant, "200000");
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    let users = Load::closed(post("/check", &letter, "false"), 3 * cpus::count());
    assert!(testing::load(&server, &users).completed > 0);
    server
}

#[test]
fn all_stages_answer_alike_and_scan_for_every_answer() {
    // The first text of the data set, which a real body would never begin with.
    let forbidden = "00000000000000000000".repeat(32) + " and more";
    for stage in STAGES {
        let server = start(stage, "1000");
        for (body, expected) in [
            ("a short letter", "false"),
            (&"x".repeat(4_000), "false"),
            (&forbidden, "true"),
            (&forbidden[1..], "false"),
        ] {
            let answer = testing::ask(&server, &post("/check", body, ""));
            assert_eq!(answer.as_deref(), Ok(expected), "{stage}: {body}");
        }
        assert_eq!(read(&server, "scans_total"), 4, "{stage}");
    }
}

#[test]
fn every_cpu_has_a_worker_in_the_solution_and_the_acceptor_stays() {
    for variant in ["solution", "all-processors"] {
        let server = under_load(variant);
        let usable = u64::from(cpus::count());
        assert_eq!(read(&server, "cpus_usable"), usable, "{variant}");
        assert_eq!(read(&server, "scan_workers"), usable, "{variant}");
        // Where they ran is for other processes to decide, too.
        assert_eq!(read(&server, "scan_cpus_allowed"), usable, "{variant}");
        if cfg!(target_os = "linux") {
            assert_eq!(read(&server, "acceptor_cpus_elsewhere"), 0, "{variant}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn one_worker_is_right_where_the_process_may_use_one_cpu() {
    for variant in STAGES {
        let server = testing::start(PROGRAM, variant, 0, &["--texts", "1000", "--cpus", "1"]);
        let answer = testing::ask(&server, &post("/check", "a letter", ""));
        assert_eq!(answer.as_deref(), Ok("false"), "{variant}");
        let counted = ["cpus_usable", "scan_workers", "scan_cpus_allowed"];
        for name in counted {
            assert_eq!(read(&server, name), 1, "{variant}: {name}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn problems_side_by_side_have_a_cpu_each() {
    let server = testing::start(
        PROGRAM,
        "problem",
        0,
        &["--texts", "200000", "--side-by-side"],
    );
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    let users = Load::closed(post("/check", &letter, "false"), 3 * cpus::count());
    assert!(testing::load(&server, &users).completed > 0);
    let usable = u64::from(cpus::count());
    assert_eq!(read(&server, "scan_workers"), usable);
    assert_eq!(read(&server, "scan_cpus_allowed"), usable);
}

// Elsewhere a thread does not inherit where it may run.
#[cfg(target_os = "linux")]
#[test]
fn one_cpu_does_all_the_work_in_the_problem() {
    let server = under_load("problem");
    let usable = u64::from(cpus::count());
    assert_eq!(read(&server, "cpus_usable"), usable);
    assert_eq!(read(&server, "scan_workers"), 1);
    assert_eq!(read(&server, "scan_cpus_allowed"), 1);
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
