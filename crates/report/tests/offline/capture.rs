//! A capture is what was measured; everything beside it can be had again.

use std::{fs, path::Path};

use crate::{
    captured::capture,
    support::{claiming, outcome, round},
};
use measurement::{
    chapter_file::{Matrix, Secondary},
    claim::{Bound, Metric, Quantity, Role, Unit},
    outcome::GeneratorKind,
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
    assert!(
        !folder.path().join("agreement.md").exists(),
        "nobody else measured"
    );
}

#[test]
fn deriving_again_changes_nothing() {
    let folder = written();
    capture::verify(folder.path()).unwrap();
    capture::derive(folder.path()).unwrap();
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
    assert!(
        error.to_string().contains("derive the capture again"),
        "{error}"
    );
    capture::derive(folder.path()).unwrap();
    capture::verify(folder.path()).unwrap();
}

#[test]
fn a_missing_or_left_over_picture_is_found() {
    let folder = written();
    fs::rename(
        folder.path().join("diff.cpu.svg"),
        folder.path().join("old.cpu.svg"),
    )
    .unwrap();
    let error = capture::verify(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("diff.cpu.svg: missing"),
        "{error}"
    );
    capture::derive(folder.path()).unwrap();
    let error = capture::verify(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("old.cpu.svg: left over"),
        "{error}"
    );
}

#[test]
fn files_of_other_tools_may_stand_beside() {
    let folder = written();
    fs::write(folder.path().join("problem.cpu.pb.gz"), [0x1f, 0x8b]).unwrap();
    capture::verify(folder.path()).unwrap();
}

#[test]
fn missing_stacks_are_named() {
    let folder = written();
    fs::remove_file(folder.path().join("solution.await.folded")).unwrap();
    let error = capture::verify(folder.path()).unwrap_err().to_string();
    assert!(error.contains("solution.await.folded: missing"), "{error}");
}

#[test]
fn a_record_of_another_version_or_none_is_refused() {
    let folder = written();
    let path = folder.path().join("capture.json");
    let record = text(folder.path(), "capture.json");
    fs::write(&path, record.replacen("\"format\": 2", "\"format\": 9", 1)).unwrap();
    let error = capture::verify(folder.path()).unwrap_err().to_string();
    assert!(error.contains("format is 9"), "{error}");
    fs::write(&path, "{").unwrap();
    let error = capture::verify(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("capture.json") && error.contains("record the capture again"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        Capture::read(folder.path()),
        Err(CaptureError::Io { .. })
    ));
}

#[test]
fn a_record_with_a_figure_that_is_no_number_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = capture();
    capture.record.rounds[0].wall_s = f64::NAN;
    let target = folder.path().join("chapter1");
    assert!(matches!(
        capture.write(&target),
        Err(CaptureError::NotARecord { .. })
    ));
    assert!(!target.exists(), "half a capture is none");
}

#[test]
fn stacks_that_cannot_be_drawn_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = capture();
    capture
        .folded
        .insert("problem.cpu.folded".into(), "main;poll\n".into());
    let target = folder.path().join("chapter1");
    let error = capture.write(&target).unwrap_err().to_string();
    assert!(error.starts_with("problem.cpu.folded: line 1"), "{error}");
    assert!(!target.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = capture()
        .write(&file.join("chapter1"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("file") && error.contains("may write"),
        "{error}"
    );
}

#[test]
fn every_table_says_where_it_comes_from() {
    let folder = written();
    for name in ["table.md", "rounds.md"] {
        let table = text(folder.path(), name);
        for part in [
            "`cargo workshop prove 1`",
            "60047d4c1f1f",
            "2026-11-20",
            "Example CPU 9000",
            "rustc 1.95.0",
        ] {
            assert!(table.contains(part), "{part} is not in {name}:\n{table}");
        }
    }
}

#[test]
fn the_table_holds_prediction_root_cause_effect_and_verdict() {
    let folder = written();
    let table = text(folder.path(), "table.md");
    println!("{table}");
    for part in [
        "| Prediction | Little's law: at most, requests per second (1,000 users) | 20 | 20,000 | predicts 1,000 times; 893 was measured, 11 % apart (told, not claimed) |",
        "(3,000 users, 0.5 s pause) | 20 | 5,455 | predicts 273 times; 265 was measured, 2.8 % apart (claimed: at most 5.0 %) |",
        "| Root cause | peak calls in flight inside the database | 1 | 1,000 | claimed: at most 1, at least 900 |",
        "| Effect | requests per second | 20.0 | 17,8",
        "| median latency | over 1.06 s | 53.7 ms |",
        "95 % interval",
        "noise floor",
        "; claimed: at least 300 |",
        "Verdict: **proved**.",
    ] {
        assert!(table.contains(part), "{part} is not in:\n{table}");
    }
    let columns = |line: &str| line.matches('|').count();
    for line in table.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(columns(line), 6, "{line}");
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
    assert!(table.contains(further), "{table}");
    let kept = "of the problem's (95 % interval";
    let guardrail = rows.last().unwrap();
    assert!(guardrail.contains("| median latency |"), "{guardrail}");
    assert!(
        guardrail.contains(kept) && guardrail.contains("claimed: at least 90 %"),
        "{guardrail}"
    );
    assert!(table.contains("Verdict: **proved**."), "{table}");
    let values = &files["values.md"];
    assert!(values.contains("<!-- ANCHOR: kept-p50-ms -->"), "{values}");
}

#[test]
fn sentences_can_include_single_figures() {
    let folder = written();
    let values = text(folder.path(), "values.md");
    println!("{values}");
    let value = |name: &str| {
        let lines: Vec<_> = values.lines().collect();
        let at = lines
            .iter()
            .position(|line| *line == format!("<!-- ANCHOR: {name} -->"))
            .unwrap_or_else(|| panic!("no {name} in:\n{values}"));
        assert_eq!(lines[at + 2], format!("<!-- ANCHOR_END: {name} -->"));
        lines[at + 1].to_owned()
    };
    assert_eq!(value("predicted-ratio"), "1,000");
    assert_eq!(value("root-cause-solution"), "1,000");
    assert_eq!(value("effect"), "893");
    assert_eq!(value("problem-requests-per-second"), "20.0");
    assert_eq!(value("in-published"), "265");
    assert_eq!(value("in-published-share"), "97 %");
    assert_eq!(value("problem-cpu-busy"), "1.2 %");
    assert_eq!(value("problem-await-top"), "`tokio::sync::Mutex::lock`");
    assert_eq!(value("problem-await-top-share"), "99.9 %");
    assert_eq!(value("published-read_rps"), "19.5");
}

#[test]
fn generators_are_compared_with_the_embedded_one() {
    let mut capture = capture();
    for (name, completed, ms) in [
        (GeneratorKind::Embedded, 3_630, 50.8),
        (GeneratorKind::Locust, 3_540, 52.0),
    ] {
        let mut seen = outcome(200, completed, 10.0, ms);
        seen.generator.name = name;
        capture
            .record
            .rounds
            .push(round(Purpose::Agreement, "solution", "load", 200.0, seen));
    }
    let files = capture.derived().unwrap();
    let agreement = &files["agreement.md"];
    assert!(agreement.contains("| -2.5 % |"), "{agreement}");
    assert!(agreement.contains("| Locust 0.1.0 | 200 |"), "{agreement}");
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
    let values = &capture.derived().unwrap()["values.md"];
    let expected = "<!-- ANCHOR: solution-cpu-per-request -->\n100 µs\n";
    assert!(values.contains(expected), "{values}");
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
    let table = &files["baselines.md"];
    let rows: Vec<&str> = table.lines().skip(2).take(2).collect();
    assert!(
        rows[0].starts_with("| solution | 12,500 | 100 % |"),
        "{table}"
    );
    assert!(
        rows[1].starts_with("| Go's net/http | 9,375 | 75 % |"),
        "{table}"
    );
    let values = &files["values.md"];
    assert!(values.contains("<!-- ANCHOR: baseline-go-share -->\n75 %\n"));
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
        let threads = if round.variant == "problem" {
            2.0
        } else {
            517.0
        };
        round.readings.insert(metric.clone(), threads);
    }
    let files = capture.derived().unwrap();
    assert!(files["table.md"].contains("| threads of the process | 2 | 517 |"));
    assert!(files["values.md"].contains("<!-- ANCHOR: solution-threads -->\n517\n"));
    let tables = &files["matrix.md"];
    assert!(
        tables.contains("| Requests per second | 3,000 users"),
        "{tables}"
    );
    assert!(tables.contains("| `solution` | 5,300 (265x) |"), "{tables}");
    assert!(
        tables.contains("| threads of the process | 3,000 users"),
        "{tables}"
    );
    assert!(tables.contains("| `solution` | 517 |"), "{tables}");
}

#[test]
fn connections_are_drawn_for_each_variant_where_they_were_watched() {
    let mut capture = capture();
    assert!(
        !capture
            .derived()
            .unwrap()
            .contains_key("plots/connections-problem.svg")
    );
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
        for part in [variant, "taken up", "finished"] {
            assert!(svg.contains(part), "{variant}: {part}");
        }
    }
}
