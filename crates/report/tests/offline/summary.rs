//! What scripts and people read after a proof.

use crate::support::record;
use analysis::verdict::analyse;
use measurement::record::{Purpose, Record};
use report::summary::Summary;

fn summary(record: &Record) -> Summary {
    Summary::new(
        record,
        &analyse(record),
        Some("target/workshop/chapter1/report.html".into()),
    )
}

/// Scripts depend on these names and kinds.
#[test]
fn the_object_has_the_keys_that_scripts_rely_on() {
    let json = serde_json::to_value(summary(&record())).unwrap();
    assert_eq!(json["chapter"], 1);
    assert_eq!(json["verdict"], "proved");
    assert!(json["reason"].as_str().unwrap().contains("300"));
    assert_eq!(json["law"]["name"], "Little's law");
    assert!((json["law"]["predicted_ratio"].as_f64().unwrap() - 1_000.0).abs() < 1e-6);
    assert!(json["root_cause"]["name"].is_string());
    assert_eq!(json["root_cause"]["problem"].as_f64(), Some(1.0));
    assert_eq!(json["root_cause"]["solution"].as_f64(), Some(1_000.0));
    assert_eq!(json["effect"]["metric"], "requests_per_second");
    let ratio = json["effect"]["ratio"].as_f64().unwrap();
    let interval = json["effect"]["interval"].as_array().unwrap();
    assert_eq!(interval.len(), 2);
    assert!(interval[0].as_f64().unwrap() <= ratio && ratio <= interval[1].as_f64().unwrap());
    assert!(json["effect"]["noise_floor"].as_f64().unwrap() >= 0.0);
    assert_eq!(json["generator"]["name"], "embedded");
    assert_eq!(json["generator"]["cpu_share"].as_f64(), Some(0.31));
    assert_eq!(json["generator"]["users"], 1_000);
    assert_eq!(json["environment"]["cpus_usable"], 2);
    assert_eq!(json["reference"][0]["value"], "19.5");
}

#[test]
fn a_run_without_figures_keeps_its_keys() {
    let mut record = record();
    record
        .rounds
        .retain(|round| round.purpose == Purpose::Equal);
    let json = serde_json::to_value(summary(&record)).unwrap();
    assert_eq!(json["verdict"], "invalid");
    assert!(json["effect"]["ratio"].is_null());
    assert!(json["effect"]["interval"].is_null());
    assert!(json["root_cause"]["problem"].is_null());
    assert!(summary(&record).table().contains("INVALID: too few rounds"));
}

#[test]
fn the_table_fits_a_terminal_and_says_all() {
    let table = summary(&record()).table();
    println!("{table}");
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line, line.trim_end());
    }
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Chapter 1: A mutex held across an await",
        "Little's law predicts 1,000 times.",
        "peak calls in flight inside the database: 1 in the problem, 1,000 in the solution.",
        "times better, 95 % interval",
        "Noise floor",
        "97 % of the 5,455 a second",
        "embedded, 1,000 users, at most 31 %",
        "Published elsewhere: 19.5 (lock held across the call, requests per second);",
        "Verdict PROVED: requests per second",
        "Report target/workshop/chapter1/report.html",
    ] {
        assert!(words.contains(part), "{part:?} is not in:\n{table}");
    }
}
