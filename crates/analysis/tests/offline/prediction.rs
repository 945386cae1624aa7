//! What laws predict for the chapters as they are written.

use analysis::prediction::{Inputs, in_scenario};
use measurement::chapter_file::ChapterFile;

use crate::support::chapter;

const CHAPTER_4: &str = include_str!("../../../../chapters/4-client-per-request/chapter.toml");

#[test]
fn chapter_1_predicts_what_the_book_says() {
    let file = chapter();
    let saturated = in_scenario(&file, "saturated", Inputs::default()).unwrap();
    assert!((saturated.ratio - 1_000.0).abs() < 1e-6);
    let published = in_scenario(&file, "published", Inputs::default()).unwrap();
    assert!((published.solution.unwrap() - 5_454.5).abs() < 0.1);
    // What an exercise must keep is far below what any fix gains.
    let check = in_scenario(&file, "check", Inputs::default()).unwrap();
    assert!(file.check.no_worse_than <= check.ratio / 2.0);
}

#[test]
fn costs_that_were_measured_on_one_server_predict_nothing_of_another() {
    let file = ChapterFile::parse(CHAPTER_4, "chapter.toml", 2).unwrap();
    let inputs = Inputs {
        cpu_per_request: Some((0.003, 0.000_1)),
        ..Inputs::default()
    };
    let plain = in_scenario(&file, "published", inputs).unwrap();
    assert!((plain.ratio - 30.0).abs() < 1e-9);
    assert_eq!(in_scenario(&file, "tls", inputs), None);
}
