//! What a reader relies on: all variants answer alike, the problem lets one
//! call at a time into the database, and the solution lets them all in.

use std::path::Path;
use std::time::Duration;

use bench::server::{Launch, Server, get};
use loadgen::Settings;
use loadgen::interrupt::Interrupt;
use measurement::load::{Exchange, Load};
use measurement::outcome::Outcome;

const USERS: u32 = 20;

fn start(variant: &str, data_seed: u64) -> Server {
    let launch = Launch {
        data_seed,
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter1")), variant)
    };
    Server::start(&launch, &Interrupt::new()).expect("the server starts")
}

/// A second of twenty users who never pause.
fn load(server: &Server) -> Outcome {
    let load = Load {
        warm_up: Duration::from_millis(200),
        ..Load::closed(Exchange::get("/read", "6"), USERS)
    };
    let interrupt = Interrupt::new();
    let settings = Settings::of(&interrupt);
    loadgen::run(server.service(), &load, &settings).expect("the load can be sent")
}

fn peak(server: &Server) -> u64 {
    let metrics = server.metrics().expect("the admin listener answers");
    let peak = metrics.count("database_calls_in_flight_peak");
    peak.expect("the lab counts it")
}

#[test]
fn all_variants_answer_alike() {
    for (data_seed, answer) in [(0, "6"), (1_000, "3006")] {
        for variant in ["problem", "exercise", "solution"] {
            let server = start(variant, data_seed);
            let body = get(server.service(), "/read", Duration::from_secs(10));
            assert_eq!(body.as_deref(), Ok(answer.as_bytes()), "{variant}");
            let elsewhere = get(server.service(), "/write", Duration::from_secs(10));
            assert!(elsewhere.expect_err("no such path").starts_with("404"));
        }
    }
}

#[test]
fn the_problem_lets_one_call_at_a_time_into_the_database() {
    let server = start("problem", 0);
    let outcome = load(&server);
    assert_eq!(outcome.wrong_answers, 0);
    assert_eq!(peak(&server), 1);
}

#[test]
fn the_solution_lets_every_user_into_the_database_at_once() {
    let server = start("solution", 0);
    let outcome = load(&server);
    assert_eq!(outcome.wrong_answers, 0);
    assert_eq!(peak(&server), u64::from(USERS));
}
