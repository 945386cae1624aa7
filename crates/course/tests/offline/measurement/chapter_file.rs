//! A damaged `chapter.toml` costs its author one sentence of reading.

use course::measurement::chapter_file::{ChapterFile, ChapterFileError};

pub(crate) const CHAPTER_1: &str =
    include_str!("../../../../../chapters/1-mutex-held-across-await/chapter.toml");
const CHAPTER_4: &str = include_str!("../../../../../chapters/4-client-per-request/chapter.toml");
const CHAPTER_6: &str =
    include_str!("../../../../../chapters/6-processor-group-limit/chapter.toml");

pub(crate) fn parse(text: &str) -> Result<ChapterFile, ChapterFileError> {
    ChapterFile::parse(text, "chapter.toml", 2)
}

/// Parses a file with one place replaced.
#[track_caller]
pub(crate) fn with(file: &str, from: &str, to: &str) -> Result<ChapterFile, ChapterFileError> {
    assert!(file.contains(from), "nothing to replace: {from}");
    parse(&file.replacen(from, to, 1))
}

/// Returns the error for a damaged chapter 1, which must be one sentence with these words.
#[track_caller]
fn refused(from: &str, to: &str, words: &[&str]) -> ChapterFileError {
    let error = with(CHAPTER_1, from, to).expect_err("damage went unnoticed");
    let sentence = error.to_string();
    println!("{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert!(sentence.ends_with('.'), "{sentence}");
    for word in words {
        assert!(error.what.contains(word), "{word:?} is not in: {error}");
    }
    error
}

/// Damages a single line like [`refused`]; the error must name the line.
#[track_caller]
pub(crate) fn damaged(from: &str, to: &str, words: &[&str]) -> usize {
    let error = refused(from, to, words);
    let sentence = error.to_string();
    assert!(sentence.starts_with("chapter.toml line "), "{sentence}");
    error.line.expect("a line")
}

/// Damages a line like [`damaged`], which must be the line that holds `place`.
#[track_caller]
pub(crate) fn damaged_at(place: &str, from: &str, to: &str, words: &[&str]) {
    assert_eq!(damaged(from, to, words), line_of(place), "{place}");
}

/// Makes two places contradict each other, like [`refused`]; the error must name both.
#[track_caller]
fn contradictory(from: &str, to: &str, places: &[&str]) {
    let error = refused(from, to, places);
    assert_eq!(error.line, None, "{error}");
}

/// Returns the line of chapter 1 that holds this.
#[track_caller]
pub(crate) fn line_of(part: &str) -> usize {
    let mut lines = CHAPTER_1.lines();
    let index = lines.position(|line| line.contains(part));
    1 + index.expect("a line of chapter 1")
}

#[test]
fn the_file_survives_being_recorded() {
    let mut file = parse(CHAPTER_1).unwrap();
    // These are only for the book.
    file.answers.clear();
    file.stills.clear();
    let json = serde_json::to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<ChapterFile>(&json).unwrap(), file);
}

#[test]
fn what_cannot_be_understood_or_is_missing_is_placed_and_named() {
    let many = "a whole number";
    for (place, from, to, words) in [
        ("title =", "title = \"A mutex", "title = A mutex", ""),
        ("path =", "path =", "route =", "unknown key `route`"),
        ("users = 3000", "users = 3000", "users = \"many\"", many),
        ("users = 3000", "users = 3000", "users = -1", many),
        ("[law.little]", "[law.little]", "[law.litle]", "`little`"),
        // In an array of tables, too.
        (
            "variant = \"solution\"",
            "variant = \"solution\"",
            "variants = 1",
            "unknown key `variants`",
        ),
        (
            "variant = \"solution\"",
            "variant = \"solution\"",
            "variant = \"\"",
            "",
        ),
        ("[exchange]", "path = \"/read\"\n", "", "missing key `path`"),
        (
            "[scenarios.saturated]",
            "duration_s = 1.2\n",
            "",
            "missing key `duration_s`",
        ),
    ] {
        damaged_at(place, from, to, &[words]);
    }
    damaged("package = \"chapter1\"\n", "", &["missing key `package`"]);
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let seconds = "write seconds, above 0";
    for (from, to, remedy) in [
        ("think_s = 0.5", "think_s = -0.5", "write seconds"),
        ("think_s = 0.5", "think_s = nan", "write seconds"),
        ("duration_s = 1.2", "duration_s = 0", seconds),
        ("duration_s = 1.2", "duration_s = inf", seconds),
        ("path = \"/read\"", "path = \"read\"", "write `/read`"),
        ("method = \"GET\"", "method = \"get\"", "such as `GET`"),
        ("answer = \"6\"", "answer = \"\"", "at least a word"),
        ("chapter = 1", "chapter = 0", "1 or more"),
        ("call_ms = 50", "call_ms = 0", "above 0"),
        ("effect_at_least = 10", "effect_at_least = 0", "above 0"),
        ("m = \"<= 1\"", "m = \"<= -1\"", "such as `<= 1`"),
        (
            "ratio = \">= 0.3 users\"",
            "ratio = \"> 300\"",
            "such as `<= 1`",
        ),
        ("role = \"effect\"", "role = \"gain\"", "`effect`"),
    ] {
        damaged_at(from, from, to, &[remedy]);
    }
}

#[test]
fn figures_that_may_be_left_out_make_sense_where_they_are_there() {
    for (from, key, value) in [
        ("package = \"chapter1\"\n", "times_alone", "nan"),
        ("package = \"chapter1\"\n", "times_alone", "-1"),
        ("[check]\n", "duration_s", "inf"),
    ] {
        let line = damaged(
            from,
            &format!("{from}{key} = {value}\n"),
            &["cannot be meant; write "],
        );
        assert_eq!(line, 1 + line_of(from.trim()), "{key}");
    }
}

#[test]
fn what_two_places_contradict_each_other_in_is_named() {
    contradictory("users = 1000\n", "", &["saturated", "`users`"]);
    contradictory("users = 200\n", "", &["load", "`users_per_cpu`"]);
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
    for (key, value, table) in [
        ("write_share", 0.5, "[write]"),
        ("bystanders_per_second", 10.0, "[bystander]"),
    ] {
        let scenario = "[scenarios.check]\n";
        let asking = format!("{scenario}{key} = {value:.1}\n");
        contradictory(scenario, &asking, &[&format!("check.{key}"), table]);
    }
    contradictory(
        "pairs = 8\ncpu",
        "pairs = 2\ncpu",
        &["rounds.pairs", "conditions.pairs_at_least = 3"],
    );
    let users = "users_per_cpu = 3\n";
    let said = with(CHAPTER_6, users, "").unwrap_err().to_string();
    assert!(said.contains("users_per_cpu"), "{said}");
}

#[test]
fn every_scenario_that_is_named_has_to_be_there() {
    for (table, from, to, place) in [
        (
            "left = 0.015625                  # 1 / 64\n",
            "scenario = \"published\"",
            "scenario = \"two\"",
            "law",
        ),
        (
            "",
            "s = [\"one\", \"published\"]",
            "s = [\"one\", \"two\"]",
            "matrix.scenarios",
        ),
        (
            "kind = \"baselines\"\n",
            "scenario = \"published\"",
            "scenario = \"two\"",
            "extras.baselines.scenario",
        ),
    ] {
        let (from, to) = (format!("{table}{from}"), format!("{table}{to}"));
        let said = with(CHAPTER_4, &from, &to).unwrap_err().what;
        assert!(said.starts_with(&format!("{place}: ")), "{said}");
        assert!(said.contains("no scenario `two`"), "{said}");
    }
}

#[test]
fn an_extra_stands_in_the_file_once() {
    let kind = "[[extras]]\nkind = \"baselines\"\n";
    let again = "[[extras]]\nkind = \"connections\"\nscenario = \"published\"\n";
    assert!(with(CHAPTER_4, kind, &format!("{again}{kind}")).is_ok());
    let said = with(CHAPTER_4, kind, &format!("{again}{again}{kind}")).unwrap_err();
    assert!(
        said.what.contains("two of them are of one kind"),
        "{}",
        said.what
    );
}

#[test]
fn a_proof_runs_no_rounds_for_what_checks_alone_judge() {
    let elsewhere = "scenario = \"tls\"\nquantity = \"requests_per_second\"\nratio = \">= 2.5\"\n";
    let of_checks = elsewhere.replacen('\n', "\nonly = \"check\"\n", 1);
    let file = with(CHAPTER_4, elsewhere, &of_checks).unwrap();
    assert_eq!(file.further_scenarios(), []);
}

#[test]
fn a_file_that_is_not_there_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chapter.toml");
    let error = ChapterFile::read(&path, "chapters/9/chapter.toml", 2);
    let error = error.unwrap_err().to_string();
    let begin = "chapters/9/chapter.toml: cannot be read";
    assert!(error.starts_with(begin), "{error}");
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
fn users_follow_from_the_cpus() {
    let file = parse(CHAPTER_6).unwrap();
    let users = 3 * 2;
    assert_eq!(file.load.users, users);
    let mut scenarios = file.scenarios.values();
    assert!(scenarios.all(|scenario| scenario.users == users));
    // A record from another machine keeps its number of users.
    let mut elsewhere = file.clone();
    elsewhere.load.users = 528;
    let json = serde_json::to_string(&elsewhere).unwrap();
    let again: ChapterFile = serde_json::from_str(&json).unwrap();
    assert_eq!(again.load.users, 528);
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
    let own = file.claims.clone();
    let file = file.with_another_upstream();
    assert!(!asks_for_tls(&file));
    assert_eq!(file.further_scenarios(), []);
    assert_eq!(file.claims.effect(), own.effect());
    assert_eq!(file.claims.root_cause(), own.root_cause());
    let chapter_1 = parse(CHAPTER_1).unwrap();
    assert_eq!(chapter_1.clone().with_another_upstream(), chapter_1);
}

/// Collects files that are or were read wrongly once, and copies with a line left out or a value replaced.
fn damaged_files() -> Vec<String> {
    const VALUES: [&str; 8] = [
        "0",
        "-1",
        "1e308",
        "nan",
        "\"\"",
        "[]",
        "\"a\\nb\"",
        "\"/\"",
    ];

    let chapters = std::fs::read_dir("../../chapters").unwrap();
    let chapters = chapters.map(|folder| folder.unwrap().path().join("chapter.toml"));
    let once = std::fs::read_dir("tests/chapter-files").unwrap();
    let files = chapters.chain(once.map(|file| file.unwrap().path()));
    let mut all = Vec::new();
    for whole in files.filter_map(|file| std::fs::read_to_string(file).ok()) {
        for (index, line) in whole.lines().enumerate() {
            let with = |other: &str| {
                let mut lines: Vec<&str> = whole.lines().collect();
                lines[index] = other;
                lines.join("\n")
            };
            all.push(with(""));
            if let Some((key, _)) = line.split_once(" = ") {
                let value = VALUES[index % VALUES.len()];
                all.push(with(&format!("{key} = {value}")));
            }
        }
        all.push(whole);
    }
    all
}

#[test]
fn a_damaged_file_is_refused_in_a_sentence_or_means_something() {
    let mut read = 0;
    for text in damaged_files() {
        let text = text.as_str();
        let file = match parse(text) {
            Ok(file) => file,
            Err(error) => {
                let sentence = error.to_string();
                assert!(
                    sentence.ends_with('.') && !sentence.contains(char::is_control),
                    "{sentence}"
                );
                assert!(sentence.len() <= 2 * text.len() + 1000, "{sentence}");
                assert!(
                    error
                        .line
                        .is_none_or(|line| line <= 1 + text.lines().count())
                );
                continue;
            }
        };
        read += 1;
        for scenario in file.scenarios.values().chain([&file.load]) {
            assert!(file.load_of(scenario).users > 0);
        }
        assert!(file.users(file.claims.effect().scenario()) > 0);
        for (scenario, pairs) in file.further_scenarios() {
            assert!(file.scenario(scenario).is_some() && pairs > 0);
        }
        // A record of it can be read again: none of its figures is infinite or NaN.
        let recorded = serde_json::to_string(&file).unwrap();
        serde_json::from_str::<ChapterFile>(&recorded).unwrap();
    }
    assert!(read > 100, "only {read} were read");
}

#[test]
fn what_a_load_cannot_be_is_said_with_what_to_do() {
    let chapter_10 = include_str!("../../../../../chapters/10-overload/chapter.toml");
    let burst = "phases = [{ share = 1.2, seconds = 4 }";
    for (from, to, words) in [
        (burst, "phases = [{ share = 0, seconds = 4 }", "above 0"),
        (
            "per_second = 400\nphases",
            "phases",
            "say `per_second`, too",
        ),
        (
            "users = 500\nper_second = 400\n",
            "users = 500\nper_second = 400\nthink_s = 1\n",
            "leave one of the two out",
        ),
        (
            "give_up_after_s = 0.25\nretries = { attempts = 3 }",
            "retries = { attempts = 3 }",
            "say `give_up_after_s`, too",
        ),
        (
            "give_up_after_s = 0.25",
            "give_up_after_s = 60",
            "before `time_out_s`",
        ),
    ] {
        let error = with(chapter_10, from, to).expect_err(words);
        assert!(error.what.contains(words), "{words}: {error}");
    }
}
