//! What a reader relies on: all variants answer alike, whatever the data.

use bench::testing::{assert_answers, get, start};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chapter3");
const VARIANTS: [&str; 5] = [
    "problem",
    "exercise",
    "solution",
    "fewer-clones",
    "parse-once",
];

#[test]
fn all_variants_answer_alike() {
    for (data_seed, answer) in [(0, "2172347200543715621"), (5, "1025006042341283301")] {
        for variant in VARIANTS {
            let server = start(PROGRAM, variant, data_seed, &[]);
            assert_answers(&server, variant, &[("/cpu", answer)]);
        }
    }
}

#[test]
fn every_seed_the_grader_may_choose_has_one_answer() {
    for data_seed in [1, 999, 123_456, 1_000_000] {
        let answers = VARIANTS.map(|variant| {
            let server = start(PROGRAM, variant, data_seed, &[]);
            get(&server, "/cpu").expect("an answer")
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    }
}
