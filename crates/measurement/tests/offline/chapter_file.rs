//! A damaged `chapter.toml` costs its author one sentence of reading.

use std::time::Duration;

use measurement::{
    chapter_file::{ChapterFile, ChapterFileError},
    law::Law,
};

pub(crate) const CHAPTER_1: &str =
    include_str!("../../../../chapters/1-mutex-held-across-await/chapter.toml");
const CHAPTER_4: &str = include_str!("../../../../chapters/4-client-per-request/chapter.toml");
const CHAPTER_6: &str = include_str!("../../../../chapters/6-processor-group-limit/chapter.toml");

pub(crate) fn parse(text: &str) -> Result<ChapterFile, ChapterFileError> {
    ChapterFile::parse(text, "chapter.toml", 2)
}

/// Chapter 1 with one place replaced, and what the author then reads.
#[track_caller]
fn refused(from: &str, to: &str) -> ChapterFileError {
    assert!(CHAPTER_1.contains(from), "nothing to damage: {from}");
    let error = parse(&CHAPTER_1.replacen(from, to, 1)).expect_err("damage went unnoticed");
    let sentence = error.to_string();
    println!("{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert!(sentence.ends_with('.'), "{sentence}");
    error
}

/// As [`refused`], where one line is wrong by itself.
#[track_caller]
pub(crate) fn damaged(from: &str, to: &str) -> ChapterFileError {
    let error = refused(from, to);
    let sentence = error.to_string();
    assert!(sentence.starts_with("chapter.toml line "), "{sentence}");
    error
}

/// As [`refused`], where two places contradict each other: the sentence names both.
#[track_caller]
fn contradictory(from: &str, to: &str, places: &[&str]) {
    let error = refused(from, to);
    assert_eq!(error.line, None, "{error}");
    for place in places {
        assert!(error.what.contains(place), "{place:?} is not in: {error}");
    }
}

#[track_caller]
pub(crate) fn line_of(text: &str, part: &str) -> Option<usize> {
    text.lines()
        .position(|line| line.contains(part))
        .map(|n| n + 1)
}

#[test]
fn chapter_1_says_what_the_book_says() {
    let file = parse(CHAPTER_1).unwrap();
    assert_eq!((file.chapter, file.package.as_str()), (1, "chapter1"));
    let load = file.load_of(&file.scenarios["published"]);
    assert_eq!(load.users, 3_000);
    assert_eq!(load.warm_up, Duration::from_secs_f64(1.5));
    assert!(matches!(&file.law, Law::Little(law) if law.problem_in_flight == 1));
    assert_eq!(file.check.no_worse_than.to_bits(), 0.8_f64.to_bits());
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
}

#[test]
fn an_unknown_key_is_named_with_those_that_are_known() {
    let error = damaged("path = \"/read\"", "route = \"/read\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "path ="));
    for part in ["unknown key `route`", "`path`", "`answer`"] {
        assert!(error.what.contains(part), "{error}");
    }
}

#[test]
fn a_missing_key_is_named_with_the_table_that_lacks_it() {
    let error = damaged("path = \"/read\"\n", "");
    assert_eq!(error.line, line_of(CHAPTER_1, "[exchange]"));
    assert!(error.what.contains("missing key `path`"), "{error}");
    let error = damaged("duration_s = 1.6\n", "");
    assert_eq!(error.line, line_of(CHAPTER_1, "[scenarios.saturated]"));
    assert!(error.what.contains("missing key `duration_s`"), "{error}");
}

#[test]
fn a_scenario_without_users_is_named() {
    contradictory("users = 1000\n", "", &["saturated", "`users`"]);
    contradictory("users = 200\n", "", &["load", "`users_per_cpu`"]);
}

#[test]
fn a_missing_key_at_the_top_is_named() {
    let error = damaged("minutes = 45\n", "");
    assert!(error.what.contains("missing key `minutes`"), "{error}");
}

#[test]
fn a_value_of_the_wrong_kind_is_placed() {
    let error = damaged("users = 3000", "users = \"many\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "users = 3000"));
    assert!(error.what.contains("a whole number"), "{error}");
    let error = damaged("users = 3000", "users = -1");
    assert_eq!(error.line, line_of(CHAPTER_1, "users = 3000"));
    assert!(error.what.contains("a whole number"), "{error}");
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
    assert!(error.what.contains("unknown key `variants`"), "{error}");
    let error = damaged("variant = \"solution\"", "variant = \"\"");
    assert_eq!(error.line, line_of(CHAPTER_1, "variant = \"solution\""));
}

#[test]
fn values_that_make_no_sense_are_refused() {
    for (from, to, remedy) in [
        ("think_s = 0.5", "think_s = -0.5", "write seconds"),
        ("think_s = 0.5", "think_s = nan", "write seconds"),
        (
            "duration_s = 1.6",
            "duration_s = 0",
            "write seconds, above 0",
        ),
        (
            "duration_s = 1.6",
            "duration_s = inf",
            "write seconds, above 0",
        ),
        ("path = \"/read\"", "path = \"read\"", "write `/read`"),
        ("method = \"GET\"", "method = \"get\"", "such as `GET`"),
        ("answer = \"6\"", "answer = \"\"", "at least a word"),
        ("minutes = 45", "minutes = 0", "1 or more"),
        ("call_ms = 50", "call_ms = 0", "above 0"),
        (
            "problem = \"<= 1\"",
            "problem = \"<= -1\"",
            "such as `<= 1`",
        ),
        ("ratio = \">= 300\"", "ratio = \"> 300\"", "such as `<= 1`"),
        ("role = \"effect\"", "role = \"gain\"", "`effect`"),
    ] {
        let error = damaged(from, to);
        assert!(error.what.contains(remedy), "{remedy:?} is not in: {error}");
        assert_eq!(error.line, line_of(CHAPTER_1, from), "{error}");
    }
    let grading = "[check]\nscenario = \"check\"\n";
    let worse = "[check]\nscenario = \"check\"\nno_worse_than = 0\n";
    let error = damaged(grading, worse);
    assert!(error.what.contains("above 0"), "{error}");
    let line = line_of(CHAPTER_1, "[check]").map(|line| line + 2);
    assert_eq!(error.line, line, "{error}");
}

#[test]
fn what_two_places_contradict_each_other_in_is_named() {
    contradictory("users = 1000", "users = 0", &["saturated", "no users"]);
    contradictory(
        "scenario = \"saturated\"",
        "scenario = \"satuated\"",
        &["claims", "`satuated`", "[scenarios.satuated]", "saturated"],
    );
    contradictory(
        "scenario = \"check\"",
        "scenario = \"chek\"",
        &["check.scenario", "`chek`", "check"],
    );
    contradictory(
        "await_profile_scenario = \"profiled\"",
        "await_profile_scenario = \"profile\"",
        &["rounds.await_profile_scenario", "`profile`", "profiled"],
    );
    contradictory(
        "[scenarios.check]\n",
        "[scenarios.check]\nwrite_share = 0.5\n",
        &["check.write_share", "[write]"],
    );
    contradictory(
        "[scenarios.check]\n",
        "[scenarios.check]\nbystanders_per_second = 10\n",
        &["check.bystanders_per_second", "[bystander]"],
    );
}

#[test]
fn every_scenario_that_is_named_has_to_be_there() {
    for (from, to, place) in [
        (
            "[law.set_up]\nscenario = \"one\"",
            "[law.set_up]\nscenario = \"two\"",
            "law",
        ),
        (
            "scenarios = [\"one\", \"published\"]",
            "scenarios = [\"one\", \"two\"]",
            "matrix.scenarios",
        ),
        (
            "[baselines]\nscenario = \"published\"",
            "[baselines]\nscenario = \"two\"",
            "baselines.scenario",
        ),
    ] {
        assert!(CHAPTER_4.contains(from), "nothing to damage: {from}");
        let said = parse(&CHAPTER_4.replacen(from, to, 1)).unwrap_err().what;
        assert!(said.starts_with(&format!("{place}: ")), "{said}");
        assert!(said.contains("no scenario `two`"), "{said}");
    }
}

#[test]
fn a_proof_runs_no_rounds_for_what_checks_alone_judge() {
    let elsewhere = "ratio = \">= 11\"\n\n# What the law predicts";
    assert!(CHAPTER_4.contains(elsewhere));
    let of_checks = elsewhere.replacen('\n', "\nonly = \"check\"\n", 1);
    let file = parse(&CHAPTER_4.replacen(elsewhere, &of_checks, 1)).unwrap();
    assert_eq!(file.further_scenarios(), []);
}

#[test]
fn fewer_pairs_than_the_conditions_ask_for_are_refused() {
    contradictory(
        "equal_pairs = 1\npairs = 6",
        "equal_pairs = 1\npairs = 2",
        &["rounds.pairs", "conditions.pairs_at_least = 6"],
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
    assert!(error.contains("git checkout"), "{error}");
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
            // Where it has no line, it begins with the place.
            let place = error.what.split_once(": ").map(|(place, _)| place);
            let is_place = |name: &str| {
                let keys = [
                    "claims",
                    "check.scenario",
                    "load",
                    "rounds.await_profile_scenario",
                ];
                keys.contains(&name) || CHAPTER_1.contains(&format!("[scenarios.{name}]"))
            };
            assert!(
                error.line.is_some() || place.is_some_and(is_place),
                "{sentence}"
            );
        }
    }
}

#[test]
fn users_follow_from_the_cpus() {
    let file = parse(CHAPTER_6).unwrap();
    let users = 3 * 2;
    assert_eq!(file.load.users, users);
    assert!(
        file.scenarios
            .values()
            .all(|scenario| scenario.users == users)
    );
    // What was recorded on another machine stays as it was.
    let mut elsewhere = file.clone();
    elsewhere.load.users = 528;
    let json = serde_json::to_string(&elsewhere).unwrap();
    let again: ChapterFile = serde_json::from_str(&json).unwrap();
    assert_eq!(again.load.users, 528);
}

#[test]
fn a_scenario_without_users_of_either_kind_is_refused() {
    let none = CHAPTER_6.replacen("users_per_cpu = 3\n", "", 1);
    let said = parse(&none).unwrap_err();
    assert!(said.to_string().contains("users_per_cpu"), "{said}");
}

#[test]
fn another_upstream_is_not_asked_for_what_only_the_embedded_one_can() {
    let file = parse(CHAPTER_4).unwrap();
    let asks_for_tls = |file: &ChapterFile| {
        let mut claims = file.claims.iter();
        claims.any(|claim| claim.scenario() == "tls")
    };
    assert!(asks_for_tls(&file));
    assert_eq!(file.further_scenarios(), [("tls", 2)]);
    let (effect, root_cause) = (
        file.claims.effect().clone(),
        file.claims.root_cause().clone(),
    );
    let file = file.with_another_upstream();
    assert!(!asks_for_tls(&file));
    assert_eq!(file.further_scenarios(), []);
    assert_eq!(file.claims.effect(), &effect);
    assert_eq!(file.claims.root_cause(), &root_cause);
    let chapter_1 = parse(CHAPTER_1).unwrap();
    assert_eq!(chapter_1.clone().with_another_upstream(), chapter_1);
}

#[test]
fn a_scenario_is_told_with_its_options_as_they_are_typed() {
    let options = r#"arguments = ["--tls", "--upstream-latency-ms", "20"]"#;
    let file = parse(&CHAPTER_4.replacen(r#"arguments = ["--tls"]"#, options, 1)).unwrap();
    assert_eq!(
        file.scenarios["tls"].in_words(),
        "50 users, `--tls --upstream-latency-ms 20`"
    );
}
