//! What a reader relies on: all variants answer alike, the problem lets one
//! call at a time into the database, and the solution lets them all in.

use std::time::Duration;

use bench::testing::{assert_answers, assert_contract, count, load, start};
use measurement::load::{Exchange, Load};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter1");
const USERS: u32 = 20;

#[test]
fn all_variants_answer_alike() {
    for (data_seed, answer) in [(0, "6"), (1_000, "3006")] {
        for variant in ["problem", "exercise", "solution"] {
            let server = start(PROGRAM, variant, data_seed, &[]);
            assert_answers(&server, variant, &[("/read", answer)]);
        }
    }
}

#[test]
fn the_problem_lets_one_call_at_a_time_into_the_database_and_the_solution_every_users() {
    for (variant, expected) in [("problem", 1), ("solution", u64::from(USERS))] {
        let server = start(PROGRAM, variant, 0, &[]);
        let users = Load {
            warm_up: Duration::from_millis(200),
            ..Load::closed(Exchange::get("/read", "6"), USERS)
        };
        load(&server, &users);
        let peak = count(&server, "database_calls_in_flight_peak");
        assert_eq!(peak, expected, "{variant}");
    }
}

#[test]
fn variants_keep_the_contract() {
    assert_contract(
        PROGRAM,
        include_str!("../chapter.toml"),
        &["exercise", "solution"],
    );
}
