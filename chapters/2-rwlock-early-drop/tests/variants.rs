//! What a reader relies on: all variants answer alike, and they differ in whether a write is made
//! while others are in the database.

use std::time::Duration;

use bench::server::Server;
use bench::testing::{self, ask, count, post, start};
use measurement::load::{Exchange, Load, Writes};
use measurement::outcome::Outcome;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter2");
const VARIANTS: [&str; 6] = [
    "problem",
    "exercise",
    "solution",
    "mutex-held",
    "mutex-dropped",
    "snapshot",
];
const USERS: u32 = 40;

/// Two seconds of users who never pause. `write_share` of their requests are writes.
fn load_with(server: &Server, write_share: f64) -> Outcome {
    let load = Load {
        writes: (write_share > 0.0).then_some(Writes {
            exchange: post("/subscribe", "87-89-34 snakes", "subscribed"),
            share: write_share,
        }),
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(2),
        ..Load::closed(Exchange::get("/read", "6"), USERS)
    };
    testing::load(server, &load)
}

/// The most calls that were in the database while a write was made, at every fifth request a write.
fn calls_while_writing(variant: &str) -> u64 {
    let server = start(PROGRAM, variant, 0, &[]);
    let outcome = load_with(&server, 0.2);
    assert!(outcome.writes > 0, "{variant} made no write");
    assert!(count(&server, "database_records_total") >= outcome.writes);
    count(&server, "database_calls_in_flight_at_record_peak")
}

#[test]
fn all_variants_answer_alike() {
    let get = |path| Exchange::get(path, "");
    let subscribe = |body| post("/subscribe", body, "");
    let missing = Err("404 Not Found: ");
    let malformed = Err("400 Bad Request: ");
    for (data_seed, sum) in [(0, Ok("6")), (1_000, Ok("3006"))] {
        for variant in VARIANTS {
            let server = start(PROGRAM, variant, data_seed, &[]);
            for (request, expected) in [
                (get("/read"), sum),
                (get("/topics/87-89-34"), Ok("cats,dogs")),
                (subscribe("87-89-34 snakes"), Ok("subscribed")),
                (subscribe("87-89-34 birds"), Ok("subscribed")),
                (subscribe("87-89-34 snakes"), Ok("subscribed")),
                (get("/topics/87-89-34"), Ok("birds,cats,dogs,snakes")),
                (get("/topics/12-67-22"), Ok("birds,mice,snakes")),
                (get("/read"), sum),
                (subscribe("00-00-00 snakes"), missing),
                (get("/topics/00-00-00"), missing),
                (subscribe("87-89-34"), malformed),
                (subscribe("87-89-34 "), malformed),
                (subscribe("87-89-34 two words"), malformed),
            ] {
                let answer = ask(&server, &request);
                let answer = answer.as_deref().map_err(String::as_str);
                assert_eq!(answer, expected, "{variant}: {request:?}");
            }
            assert_eq!(count(&server, "database_records_total"), 3, "{variant}");
            assert_eq!(count(&server, "database_calls_total"), 2, "{variant}");
        }
    }
}

#[test]
fn where_guards_are_held_no_write_is_made_during_a_call() {
    for variant in ["problem", "mutex-held"] {
        assert_eq!(calls_while_writing(variant), 0, "{variant}");
    }
}

#[test]
fn where_guards_end_early_writes_are_made_during_calls() {
    for variant in ["solution", "mutex-dropped", "snapshot"] {
        let calls = calls_while_writing(variant);
        assert!(calls >= u64::from(USERS / 2), "{variant}: {calls}");
    }
}

/// A test that only reads does not notice the fault.
#[test]
fn without_writes_the_problem_lets_every_user_into_the_database_at_once() {
    for (variant, expected) in [("problem", USERS), ("mutex-held", 1)] {
        let server = start(PROGRAM, variant, 0, &[]);
        load_with(&server, 0.0);
        let peak = count(&server, "database_calls_in_flight_peak");
        assert_eq!(peak, u64::from(expected), "{variant}");
    }
}
