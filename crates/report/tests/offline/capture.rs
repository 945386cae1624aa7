//! A capture is what was measured; everything beside it can be had again.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{
    captured::{capture, has},
    support::{claiming, outcome, round},
};
use measurement::{
    chapter_file::{Matrix, Secondary},
    claim::{Bound, Metric, Quantity, Role, Unit},
    outcome::{BystanderOutcome, Latency},
    record::{ConnectionsAt, Purpose},
};
use report::capture::{self, Capture, CaptureError, Difference};

fn written() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    capture().write(folder.path()).unwrap();
    folder
}

#[track_caller]
fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn stale(folder: &tempfile::TempDir) -> String {
    capture::verify(folder.path()).unwrap_err().to_string()
}

#[test]
fn a_capture_is_read_as_it_was_written() {
    let folder = written();
    let read = Capture::read(folder.path()).unwrap();
    assert_eq!(read.folded, capture().folded);
    assert_eq!(read.record.chapter, capture().record.chapter);
    assert_eq!(read.analysis().verdict, capture().analysis().verdict);
}

#[test]
fn a_capture_has_the_files_that_the_book_includes() {
    let folder = written();
    for name in [
        "capture.json",
        "table.md",
        "rounds.md",
        "environment.md",
        "published.md",
        "values.md",
        "plots/latency.svg",
        "plots/throughput.svg",
        "problem.cpu.folded",
        "problem.cpu.svg",
        "problem.await.svg",
        "solution.cpu.svg",
        "solution.await.svg",
        "diff.cpu.svg",
    ] {
        assert!(!text(folder.path(), name).is_empty(), "{name}");
    }
}

#[test]
fn deriving_again_changes_nothing_and_other_tools_files_may_stay() {
    let folder = written();
    capture::verify(folder.path()).unwrap();
    capture::derive(folder.path()).unwrap();
    fs::write(folder.path().join("problem.cpu.pb.gz"), [0x1f, 0x8b]).unwrap();
    fs::write(folder.path().join("agreement.md"), "a study's").unwrap();
    capture::verify(folder.path()).unwrap();
}

#[test]
fn a_figure_typed_by_hand_is_found() {
    let folder = written();
    let table = text(folder.path(), "table.md").replace("893", "1,893");
    fs::write(folder.path().join("table.md"), table).unwrap();
    let error = capture::verify(folder.path()).unwrap_err();
    assert!(
        matches!(&error, CaptureError::Stale { path, difference: Difference::Differs } if path.ends_with("table.md")),
        "{error}"
    );
    has(&error.to_string(), &["derive the capture again"]);
    capture::derive(folder.path()).unwrap();
    capture::verify(folder.path()).unwrap();
}

#[test]
fn files_that_are_missing_or_left_over_are_named() {
    let folder = written();
    let path = |name| folder.path().join(name);
    fs::rename(path("diff.cpu.svg"), path("old.cpu.svg")).unwrap();
    has(&stale(&folder), &["diff.cpu.svg: missing"]);
    capture::derive(folder.path()).unwrap();
    has(&stale(&folder), &["old.cpu.svg: left over"]);
    fs::remove_file(path("solution.await.folded")).unwrap();
    has(&stale(&folder), &["solution.await.folded: missing"]);
}

#[test]
fn a_record_of_another_version_or_none_is_refused() {
    let folder = written();
    let path = folder.path().join("capture.json");
    let record = text(folder.path(), "capture.json");
    fs::write(&path, record.replacen("\"format\": 2", "\"format\": 9", 1)).unwrap();
    has(&stale(&folder), &["format is 9"]);
    fs::write(&path, "{").unwrap();
    let error = stale(&folder);
    has(&error, &["capture.json", "record the capture again"]);
    assert_eq!(error.lines().count(), 1, "{error}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        Capture::read(folder.path()),
        Err(CaptureError::Io { .. })
    ));
}

#[test]
fn a_capture_that_cannot_be_derived_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("chapter1");
    let mut no_number = capture();
    no_number.record.rounds[0].wall_s = f64::NAN;
    let error = no_number.write(&target).unwrap_err();
    assert!(matches!(error, CaptureError::NotARecord { .. }), "{error}");
    let mut no_count = capture();
    let stacks = no_count.folded.get_mut("problem.cpu.folded").unwrap();
    "main;poll\n".clone_into(stacks);
    let error = no_count.write(&target).unwrap_err().to_string();
    assert!(error.starts_with("problem.cpu.folded: line 1"), "{error}");
    assert!(!target.exists(), "half a capture is none");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = capture().write(&file.join("chapter1")).unwrap_err();
    has(&error.to_string(), &["file", "may write"]);
}

#[test]
fn the_table_holds_prediction_root_cause_effect_and_verdict() {
    let folder = written();
    let table = text(folder.path(), "table.md");
    println!("{table}");
    has(
        &table,
        &[
            "| Prediction | Little's law: at most, requests per second (1,000 users) | 20 | 20,000 | predicts 1,000 times; 893 was measured, 11 % apart (told, not claimed) |",
            "(3,000 users, 0.5 s pause) | 20 | 5,455 | predicts 273 times; 265 was measured, 2.8 % apart (claimed: at most 5.0 %) |",
            "| Root cause | peak calls in flight inside the database | 1 | 1,000 | claimed: at most 1, at least 900 |",
            "| Effect | requests per second | 20.0 | 17,8",
            "| median latency | over 1.06 s | 53.7 ms |",
            "95 % interval",
            "noise floor",
            "; claimed: at least 300 |",
            "Verdict: **proved**.",
        ],
    );
    let columns = |line: &str| line.matches('|').count();
    for line in table.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(columns(line), 6, "{line}");
    }
    for measured in [&table, &text(folder.path(), "rounds.md")] {
        has(
            measured,
            &[
                "`cargo workshop prove 1`",
                "60047d4c1f1f",
                "2026-11-20",
                "Example CPU 9000",
                "rustc 1.95.0",
            ],
        );
    }
}

#[test]
fn further_effects_and_guardrails_have_rows_that_say_where() {
    let mut capture = capture();
    claiming(&mut capture.record, |claims| {
        let mut effect = claims[1].clone();
        effect.scenario = Some("published".to_owned());
        effect.ratio = Some(Bound::at_least(200.0));
        let mut guardrail = claims[1].clone();
        guardrail.role = Role::Guardrail;
        guardrail.quantity = Some(Quantity::Metric(Metric::P50Ms));
        guardrail.ratio = Some(Bound::at_least(0.9));
        claims.extend([effect, guardrail]);
    });
    let mut again: Vec<_> = capture.record.rounds[14..].to_vec();
    again.reverse();
    capture.record.rounds.extend(again);
    let files = capture.derived().unwrap();
    let table = &files["table.md"];
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
    let labels: Vec<&str> = rows
        .iter()
        .map(|row| row.split(" | ").next().unwrap())
        .collect();
    let expected = [
        "| Prediction",
        "| Prediction",
        "| Root cause",
        "| Effect",
        "| ",
        "| ",
        "| Effect",
        "| Guardrail",
    ];
    assert_eq!(labels[2..], expected, "{table}");
    let further = "| Effect | requests per second in the scenario \"published\" | 20.0 | 5,300 | \
                   265 times better (pairs from 265 to 265); claimed: at least 200 |";
    has(table, &[further, "Verdict: **proved**."]);
    has(
        rows.last().unwrap(),
        &[
            "| median latency |",
            "of the problem's (95 % interval",
            "claimed: at least 90 %",
        ],
    );
    has(&files["values.md"], &["<!-- ANCHOR: kept-p50-ms -->"]);
}

#[test]
fn sentences_can_include_single_figures() {
    let folder = written();
    let values = text(folder.path(), "values.md");
    println!("{values}");
    for (name, value) in [
        ("predicted-ratio", "1,000"),
        ("root-cause-solution", "1,000"),
        ("effect", "893"),
        ("problem-requests-per-second", "20.0"),
        ("in-published", "265"),
        ("in-published-share", "97 %"),
        ("problem-cpu-busy", "1.2 %"),
        ("problem-await-top", "`tokio::sync::Mutex::lock`"),
        ("problem-await-top-share", "99.9 %"),
        ("published-read_rps", "19.5"),
    ] {
        has(&values, &[&anchor(name, value)]);
    }
}

/// A figure in `values.md`.
fn anchor(name: &str, value: &str) -> String {
    format!("<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->\n")
}

#[test]
fn a_run_without_rounds_still_gives_a_capture_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = capture();
    capture.record.rounds.clear();
    capture.record.profiles.clear();
    capture.folded.clear();
    capture.write(folder.path()).unwrap();
    capture::verify(folder.path()).unwrap();
    assert!(text(folder.path(), "table.md").contains("Verdict: **invalid**"));
    assert!(!folder.path().join("plots/latency.svg").exists());
}

#[test]
fn cpu_time_is_shared_out_among_all_answers_of_its_span() {
    let mut capture = capture();
    for round in &mut capture.record.rounds {
        // The warm-up's answers cost time, too, and the generator does not count them.
        round.server_cpu_s = Some(0.9);
        round.server_answers = Some(9_000);
    }
    let files = capture.derived().unwrap();
    let expected = anchor("solution-cpu-per-request", "100 µs");
    has(&files["values.md"], &[&expected]);
}

#[test]
fn baselines_stand_beside_the_solution_of_the_same_rounds() {
    let mut capture = capture();
    for (service, answers) in [("Go's net/http", 15_000), ("solution", 20_000)] {
        let outcome = outcome(1_000, answers, 1.6, 40.0);
        let round = round(Purpose::Baseline, service, "saturated", 0.0, outcome);
        capture.record.rounds.push(round);
    }
    let files = capture.derived().unwrap();
    let rows = "| solution | 12,500 | 100 % |";
    let (_, below) = files["baselines.md"].split_once(rows).unwrap();
    has(below, &["\n| Go's net/http | 9,375 | 75 % |"]);
    has(&files["values.md"], &[&anchor("baseline-go-share", "75 %")]);
}

#[test]
fn what_stands_beside_the_root_cause_is_in_every_table() {
    let mut capture = capture();
    let metric = "threads".to_owned();
    capture.record.chapter.secondary = vec![Secondary {
        name: "threads of the process".to_owned(),
        quantity: metric.clone(),
        unit: Unit::Count,
    }];
    capture.record.chapter.matrix = Some(Matrix {
        title: "Requests per second".to_owned(),
        variants: vec!["problem".to_owned(), "solution".to_owned()],
        scenarios: vec!["published".to_owned()],
    });
    let cell = |variant: &str, completed| {
        let outcome = outcome(3_000, completed, 4.0, 51.0);
        round(Purpose::Matrix, variant, "published", 1.0, outcome)
    };
    let cells = [cell("problem", 80), cell("solution", 21_200)];
    capture.record.rounds.extend(cells);
    for round in &mut capture.record.rounds {
        let is_problem = round.variant == "problem";
        let threads = if is_problem { 2.0 } else { 517.0 };
        round.readings.insert(metric.clone(), threads);
    }
    let files = capture.derived().unwrap();
    has(
        &files["table.md"],
        &["| threads of the process | 2 | 517 |"],
    );
    has(&files["values.md"], &[&anchor("solution-threads", "517")]);
    has(
        &files["matrix.md"],
        &[
            "| Requests per second | 3,000 users",
            "| `solution` | 5,300 (265x) |",
            "| threads of the process | 3,000 users",
            "| `solution` | 517 |",
        ],
    );
}

#[test]
fn pings_are_drawn_by_percentile_where_bystanders_were_measured() {
    let mut capture = capture();
    assert!(!capture.derived().unwrap().contains_key("plots/pings.svg"));
    for round in &mut capture.record.rounds {
        let latency = Latency {
            quantiles: vec![(0.0, 200.0), (0.5, 220.0), (0.99, 250.0), (0.999, 990.0)],
            ..Latency::default()
        };
        round.outcome.bystander = Some(BystanderOutcome {
            completed: 240,
            errors: BTreeMap::new(),
            wrong_answers: 0,
            unfinished: 0,
            service_latency: latency.clone(),
            latency,
        });
    }
    let files = capture.derived().unwrap();
    let svg = &files["plots/pings.svg"];
    // Of 240 answers the slowest in a thousand is none.
    has(svg, &["Latency of a ping", "200 ms", "250 ms", "99 %"]);
    assert!(!svg.contains("990 ms"), "{svg}");
}

#[test]
fn connections_are_drawn_for_each_variant_where_they_were_watched() {
    let mut capture = capture();
    let unwatched = capture.derived().unwrap();
    assert!(!unwatched.contains_key("plots/connections-problem.svg"));
    for variant in ["problem", "solution"] {
        let outcome = outcome(1_000, 80, 4.0, 51.0);
        let mut watched = round(Purpose::Series, variant, "saturated", 1.0, outcome);
        watched.connections = (0..10_u32)
            .map(|tenth| ConnectionsAt {
                s: f64::from(tenth) / 10.0,
                accepted: u64::from(30 * tenth),
                finished: u64::from(25 * tenth),
            })
            .collect();
        capture.record.rounds.push(watched);
    }
    let files = capture.derived().unwrap();
    for variant in ["problem", "solution"] {
        let svg = &files[&format!("plots/connections-{variant}.svg")];
        has(svg, &[variant, "taken up", "finished"]);
    }
}
