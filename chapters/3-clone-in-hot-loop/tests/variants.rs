//! What a reader relies on: all variants answer alike, whatever the data.

use std::path::Path;
use std::time::Duration;

use bench::server::{Launch, Server, get};
use loadgen::interrupt::Interrupt;

const VARIANTS: [&str; 4] = ["problem", "exercise", "solution", "parse-once"];
const TIMEOUT: Duration = Duration::from_secs(30);

fn start(variant: &str, data_seed: u64) -> Server {
    let launch = Launch {
        data_seed,
        ..Launch::of(Path::new(env!("CARGO_BIN_EXE_chapter3")), variant)
    };
    Server::start(&launch, &Interrupt::new()).expect("the server starts")
}

#[test]
fn all_variants_answer_alike() {
    for (data_seed, answer) in [(0, "6000000"), (5, "21000000")] {
        for variant in VARIANTS {
            let server = start(variant, data_seed);
            let body = get(server.service(), "/cpu", TIMEOUT);
            assert_eq!(body.as_deref(), Ok(answer.as_bytes()), "{variant}");
            let elsewhere = get(server.service(), "/gpu", TIMEOUT);
            assert!(elsewhere.expect_err("no such path").starts_with("404"));
        }
    }
}

#[test]
fn every_seed_the_grader_may_choose_has_one_answer() {
    for data_seed in [1, 999, 123_456, 1_000_000] {
        let answers = VARIANTS.map(|variant| {
            let server = start(variant, data_seed);
            get(server.service(), "/cpu", TIMEOUT).expect("an answer")
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    }
}
