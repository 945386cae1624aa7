//! A damaged `chapter.toml` costs its author one sentence of reading.

use std::time::Duration;

use crate::support::CHAPTER_1;
use analysis::prediction::{Inputs, in_scenario};
use bench::proof::planned_s;
use measurement::chapter_file::{ChapterFile, ChapterFileError};

const CHAPTER_4: &str = include_str!("../../../../chapters/4-client-per-request/chapter.toml");

fn parse(text: &str) -> Result<ChapterFile, ChapterFileError> {
    ChapterFile::parse(text, "chapter.toml", 2)
}

/// Chapter 1 with one place replaced, and what the author then reads.
#[track_caller]
fn damaged(from: &str, to: &str) -> ChapterFileError {
    assert!(CHAPTER_1.contains(from), "nothing to damage: {from}");
    let error = parse(&CHAPTER_1.replacen(from, to, 1)).expect_err("damage went unnoticed");
    let sentence = error.to_string();
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    println!("{sentence}");
    assert!(sentence.starts_with("chapter.toml line "), "{sentence}");
    error
}

#[track_caller]
fn line_of(text: &str, part: &str) -> Option<usize> {
    text.lines()
        .position(|line| line.contains(part))
        .map(|n| n + 1)
}

#[test]
fn chapter_1_says_what_the_book_says() {
    let file = parse(CHAPTER_1).unwrap();
    assert_eq!((file.chapter, file.package.as_str()), (1, "chapter1"));
    let saturated = in_scenario(&file, "saturated", Inputs::default()).unwrap();
    assert!((saturated.ratio - 1_000.0).abs() < 1e-6);
    let published = in_scenario(&file, "published", Inputs::default()).unwrap();
    assert!((published.solution.unwrap() - 5_454.5).abs() < 0.1);
    let load = file.load_of(&file.scenarios["published"]);
    assert_eq!(load.users, 3_000);
    assert_eq!(load.warm_up, Duration::from_secs_f64(1.5));
    let check = in_scenario(&file, "check", Inputs::default()).unwrap();
    assert!(file.check.at_least <= check.ratio / 2.0);
}

#[test]
fn a_proof_of_chapter_1_leaves_room_in_a_minute() {
    let planned = planned_s(&parse(CHAPTER_1).unwrap());
    assert!(planned < 52.0, "{planned} s of load");
}

#[test]
fn the_file_survives_being_recorded() {
    let file = parse(CHAPTER_1).unwrap();
    let json = serde_json::to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<ChapterFile>(&json).unwrap(), file);
}

#[test]
fn broken_toml_is_placed() {
    let error = damaged("title = \"A mutex", "title = A mutex");
    assert_eq!(error.line, line_of(CHAPTER_1, "title ="));
    assert!(error.remedy.contains("TOML"), "{error}");
}

#[test]
fn an_unknown_key_is_named_with_its_table() {
    let error = damaged("path = \"/read\"", "route = \"/read\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "path ="));
    assert_eq!(error.key.as_deref(), Some("exchange.route"));
    assert!(error.remedy.contains("spelling"), "{error}");
}

#[test]
fn a_missing_key_is_named_with_the_table_that_lacks_it() {
    let error = damaged("users = 1000\n", "");
    assert_eq!(error.line, line_of(CHAPTER_1, "[scenarios.saturated]"));
    assert_eq!(error.key.as_deref(), Some("scenarios.saturated.users"));
    assert!(error.what.contains("`users`"), "{error}");
    let error = damaged("[root cause]\n", "[root causes]\n");
    assert!(error.to_string().contains("root_cause"), "{error}");
}

#[test]
fn a_missing_key_at_the_top_is_named() {
    let error = damaged("minutes = 45\n", "");
    assert!(error.what.contains("`minutes`"), "{error}");
    assert!(error.remedy.contains("add it"), "{error}");
}

#[test]
fn a_value_of_the_wrong_kind_is_placed() {
    let error = damaged("users = 3000", "users = \"many\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "users = 3000"));
    assert_eq!(error.key.as_deref(), Some("scenarios.published.users"));
    let error = damaged("users = 3000", "users = -1");
    assert_eq!(error.key.as_deref(), Some("scenarios.published.users"));
}

#[test]
fn a_law_that_nobody_knows_is_placed() {
    let error = damaged("[law.little]", "[law.litle]");
    assert!(error.to_string().contains("`little`"), "{error}");
    assert_eq!(error.line, line_of(CHAPTER_1, "[law.little]"));
}

#[test]
fn an_array_of_tables_is_placed_too() {
    let error = damaged("variant = \"solution\"", "variants = \"solution\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "variant = \"solution\""));
    assert_eq!(error.key.as_deref(), Some("steps.variants"));
    let error = damaged("variant = \"solution\"", "variant = \"\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "variant = \"solution\""));
}

#[test]
fn values_that_make_no_sense_are_refused() {
    for (from, to, key) in [
        ("users = 1000", "users = 0", "scenarios.saturated.users"),
        ("think_s = 0.5", "think_s = -0.5", "load.think_s"),
        ("think_s = 0.5", "think_s = nan", "load.think_s"),
        (
            "duration_s = 1.6",
            "duration_s = 0",
            "scenarios.saturated.duration_s",
        ),
        (
            "duration_s = 1.6",
            "duration_s = inf",
            "scenarios.saturated.duration_s",
        ),
        ("path = \"/read\"", "path = \"read\"", "exchange.path"),
        ("method = \"GET\"", "method = \"get\"", "exchange.method"),
        ("answer = \"6\"", "answer = \"\"", "exchange.answer"),
        ("at_least = 300", "at_least = 0", "effect.at_least"),
        ("at_least = 100", "at_least = 0", "check.at_least"),
        (
            "at_least_share = 0.95",
            "at_least_share = 95",
            "bound.at_least_share",
        ),
        ("call_ms = 50", "call_ms = 0", "law.little.call_ms"),
        (
            "scenario = \"saturated\"",
            "scenario = \"satuated\"",
            "effect.scenario",
        ),
        ("at_most = 1 ", "at_most = -1 ", "root_cause.problem"),
    ] {
        let error = damaged(from, to);
        assert_eq!(error.key.as_deref(), Some(key), "{error}");
        assert_eq!(error.line, line_of(CHAPTER_1, from), "{error}");
    }
}

#[test]
fn fewer_pairs_than_the_conditions_ask_for_are_refused() {
    let error = damaged("equal_pairs = 1\npairs = 6", "equal_pairs = 1\npairs = 2");
    assert_eq!(error.key.as_deref(), Some("rounds.pairs"));
    assert!(
        error.what.contains("conditions.pairs_at_least = 6"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_not_there_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = ChapterFile::read(
        &folder.path().join("chapter.toml"),
        "chapters/9/chapter.toml",
        2,
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with("chapters/9/chapter.toml: cannot be read"),
        "{error}"
    );
    assert!(!error.contains(folder.path().to_str().unwrap()), "{error}");
}

#[test]
fn no_prefix_of_the_file_makes_it_panic() {
    for (end, _) in CHAPTER_1.char_indices() {
        drop(parse(&CHAPTER_1[..end]));
    }
}

#[test]
fn no_missing_line_makes_it_panic_or_speak_in_riddles() {
    let lines: Vec<_> = CHAPTER_1.lines().collect();
    for left_out in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(left_out);
        if let Err(error) = parse(&rest.join("\n")) {
            let sentence = error.to_string();
            assert_eq!(sentence.lines().count(), 1, "{sentence}");
            assert!(error.line.is_some(), "{sentence}");
        }
    }
}

#[test]
fn costs_that_were_measured_on_one_server_predict_nothing_of_another() {
    let file = parse(CHAPTER_4).unwrap();
    let inputs = Inputs {
        cpu_per_request: Some((0.003, 0.000_1)),
        ..Inputs::default()
    };
    let plain = in_scenario(&file, "published", inputs).unwrap();
    assert!((plain.ratio - 30.0).abs() < 1e-9);
    assert_eq!(in_scenario(&file, "tls", inputs), None);
}

#[test]
fn another_upstream_is_not_asked_for_what_only_the_embedded_one_can() {
    let file = parse(CHAPTER_4).unwrap();
    assert!(file.points.iter().any(|point| point.scenario == "tls"));
    let planned = planned_s(&file);
    let file = file.with_another_upstream();
    assert!(file.points.is_empty());
    assert!(planned_s(&file) < planned);
    let chapter_1 = parse(CHAPTER_1).unwrap();
    assert_eq!(chapter_1.clone().with_another_upstream(), chapter_1);
}

#[test]
fn a_setting_is_told_with_its_options_as_they_are_typed() {
    let options = r#"arguments = ["--tls", "--upstream-latency-ms", "20"]"#;
    let file = parse(&CHAPTER_4.replacen(r#"arguments = ["--tls"]"#, options, 1)).unwrap();
    assert_eq!(
        file.scenarios["tls"].in_words(),
        "50 users, `--tls --upstream-latency-ms 20`"
    );
}
