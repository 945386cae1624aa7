//! What a reader relies on: all variants answer alike and scan for every answer, and they differ in
//! how many CPUs work.

use std::path::Path;
use std::time::Duration;

use bench::server::{Launch, Server, ServerError, send};
use loadgen::Settings;
use loadgen::cpus;
use loadgen::interrupt::Interrupt;
use measurement::load::{Exchange, Load};

const STAGES: [&str; 6] = [
    "basic",
    "thread-isolated",
    "problem",
    "exercise",
    "solution",
    "all-processors",
];

fn start_with(variant: &str, texts: &str) -> Result<Server, ServerError> {
    let launch = Launch {
        arguments: &["--texts".to_owned(), texts.to_owned()],
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter6")), variant)
    };
    Server::start(&launch, &Interrupt::new())
}

fn start(variant: &str) -> Server {
    start_with(variant, "200000").expect("the server starts")
}

fn check(body: &str, answer: &str) -> Exchange {
    Exchange {
        method: "POST".to_owned(),
        body: Some(body.to_owned()),
        ..Exchange::get("/check", answer)
    }
}

fn ask(server: &Server, body: &str) -> String {
    let answer = send(server.service(), &check(body, ""), Duration::from_secs(10));
    String::from_utf8(answer.expect("it answers")).expect("it is text")
}

fn read(server: &Server, metric: &str) -> u64 {
    let metrics = server.metrics().expect("the admin listener answers");
    metrics.count(metric).expect("the lab counts it")
}

/// Three users a CPU who never pause, for a second.
fn load(server: &Server) {
    let letter = "None of the forbidden texts begins as this letter does. ".repeat(12);
    let load = Load::closed(check(&letter, "false"), 3 * cpus::count());
    let interrupt = Interrupt::new();
    let settings = Settings::of(&interrupt);
    let outcome = loadgen::run(server.service(), &load, &settings).expect("it can be sent");
    assert_eq!((outcome.wrong_answers, outcome.error_count()), (0, 0));
    assert!(outcome.completed > 0);
}

#[test]
fn all_stages_answer_alike_and_scan_for_every_answer() {
    // The first text of the data set, which a real body would never begin with.
    let forbidden = "00000000000000000000".repeat(32) + " and more";
    for stage in STAGES {
        let server = start_with(stage, "1000").expect("the server starts");
        assert_eq!(ask(&server, "a short letter"), "false", "{stage}");
        assert_eq!(ask(&server, &"x".repeat(4_000)), "false", "{stage}");
        assert_eq!(ask(&server, &forbidden), "true", "{stage}");
        assert_eq!(ask(&server, &forbidden[1..]), "false", "{stage}");
        assert_eq!(read(&server, "scans_total"), 4, "{stage}");
    }
}

#[test]
fn every_cpu_has_a_worker_in_the_solution() {
    let server = start("solution");
    let usable = u64::from(cpus::count());
    load(&server);
    assert_eq!(read(&server, "cpus_usable"), usable);
    assert_eq!(read(&server, "scan_workers"), usable);
    // Where they ran is for other processes to decide, too.
    assert_eq!(read(&server, "scan_cpus_allowed"), usable);
}

// Elsewhere a thread does not inherit where it may run.
#[cfg(target_os = "linux")]
#[test]
fn one_cpu_does_all_the_work_in_the_problem() {
    let server = start("problem");
    load(&server);
    let usable = u64::from(cpus::count());
    assert_eq!(read(&server, "cpus_usable"), usable);
    assert_eq!(read(&server, "scan_workers"), 1);
    assert_eq!(read(&server, "scan_cpus_allowed"), 1);
}

#[test]
fn a_data_set_that_does_not_fit_is_refused_before_anything_listens() {
    match start_with("solution", "1000000000000") {
        Err(ServerError::Ended { stderr, .. }) => {
            assert!(stderr.contains("ask for fewer with --texts"), "{stderr}");
        }
        other => panic!("it ought to end: {other:?}"),
    }
}
