//! The output of a proof, for scripts and for people.

use crate::{
    report::captured::has,
    support::{claiming, record},
};
use course::analysis::verdict::analyse;
use course::measurement::{
    claim::{Bound, Quantity, Role},
    record::{Purpose, Record},
};
use course::report::summary::Summary;
use serde_json::{Value, json};
use statistics::metric::Unit;

fn summary(record: &Record) -> Summary {
    Summary::new(
        record,
        &analyse(record),
        52.5,
        Some("target/workshop/chapter1/report.html".into()),
    )
}

fn json(record: &Record) -> Value {
    serde_json::to_value(summary(record)).unwrap()
}

fn keys(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Returns the claim of a role in a scenario.
#[track_caller]
fn claim<'a>(json: &'a Value, role: &str, scenario: &str) -> &'a Value {
    let mut claims = json["claims"].as_array().unwrap().iter();
    claims
        .find(|claim| claim["role"] == role && claim["scenario"] == scenario)
        .unwrap_or_else(|| panic!("no {role} in {scenario}: {json:#}"))
}

#[track_caller]
fn is_about(value: &Value, (low, high): (f64, f64)) {
    let number = value.as_f64().unwrap();
    assert!((low..high).contains(&number), "{number}");
}

/// Scripts depend on these names and kinds. `serde_json` sorts them.
#[test]
fn the_object_has_the_keys_that_scripts_rely_on() {
    let json = json(&record());
    let mut expected = "chapter title variant verdict reason seconds claims prediction generator \
                        environment reference report"
        .split_whitespace()
        .collect::<Vec<_>>();
    expected.sort_unstable();
    assert_eq!(keys(&json), expected);
    for (key, value) in [
        ("/chapter", json!(1)),
        ("/variant", json!("solution")),
        ("/verdict", json!("proved")),
        ("/seconds", json!(52.5)),
        ("/generator/name", json!("embedded")),
        ("/generator/cpu_share", json!(0.31)),
        ("/generator/users", json!(1_000)),
        ("/environment/cpus_usable", json!(2)),
        ("/reference/0/value", json!("19.5")),
        ("/report", json!("target/workshop/chapter1/report.html")),
    ] {
        assert_eq!(json.pointer(key), Some(&value), "{key}");
    }
    assert!(json["reason"].as_str().unwrap().contains("300"));
    assert!(json["prediction"].as_str().unwrap().contains("1,000 times"));
}

#[test]
fn every_claim_has_the_same_keys_and_plain_numbers() {
    let json = json(&record());
    let root_cause = json!({
        "role": "root_cause",
        "name": "peak calls in flight inside the database",
        "quantity": "database_calls_in_flight_peak",
        "scenario": "saturated",
        "unit": "",
        "problem": 1.0,
        "fix": 1000.0,
        "ratio": null,
        "interval": null,
        "noise_floor": null,
        "bound": "problem <= 1, fix >= 0.5 users",
        "holds": true,
    });
    let claims = json["claims"].as_array().unwrap();
    assert_eq!(claims[0], root_cause);
    let roles: Vec<&Value> = claims.iter().map(|claim| &claim["role"]).collect();
    assert_eq!(roles, ["root_cause", "effect", "prediction", "prediction"]);
    for claim in claims {
        let keys = keys(claim).into_iter();
        let keys: Vec<&str> = keys.filter(|key| *key != "measured").collect();
        assert_eq!(keys, self::keys(&root_cause), "{claim:#}");
        assert_eq!(
            claim.get("measured").is_some(),
            claim["role"] == "prediction"
        );
    }
    let effect = claim(&json, "effect", "saturated");
    for (key, value) in [
        ("name", json!("requests per second")),
        ("quantity", json!("requests_per_second")),
        ("unit", json!("1/s")),
        ("problem", json!(20.0)),
        ("bound", json!("ratio >= 0.3 users")),
        ("holds", json!(true)),
    ] {
        assert_eq!(effect[key], value, "{key}");
    }
    is_about(&effect["fix"], (17_800.0, 17_950.0));
    is_about(&effect["ratio"], (880.0, 900.0));
    is_about(&effect["noise_floor"], (0.0, 0.05));
    let (low, high) = serde_json::from_value(effect["interval"].clone()).unwrap();
    is_about(&effect["ratio"], (low, high));
}

#[test]
fn a_prediction_is_beside_what_was_measured() {
    let json = json(&record());
    let told = claim(&json, "prediction", "saturated");
    is_about(&told["ratio"], (999.999, 1_000.001));
    is_about(&told["problem"], (19.999, 20.001));
    is_about(&told["fix"], (19_999.99, 20_000.01));
    is_about(&told["measured"], (880.0, 900.0));
    assert!(told["bound"].is_null() && told["holds"].is_null());
    let judged = claim(&json, "prediction", "published");
    assert_eq!(judged["bound"], "within 0.1");
    assert_eq!(judged["holds"], true);
    is_about(&judged["measured"], (265.0, 266.0));
}

#[test]
fn a_guardrail_has_its_unit_and_no_rounded_number() {
    let mut record = record();
    claiming(&mut record, |claims| {
        let mut guardrail = claims[0].clone();
        guardrail.role = Role::Guardrail;
        guardrail.name = Some("peak memory of the process".to_owned());
        guardrail.quantity = Quantity::Counter("process_memory_peak_bytes".to_owned());
        guardrail.unit = Unit::Bytes;
        (guardrail.problem, guardrail.solution) = (None, Some(Bound::at_most(268_435_456.0)));
        claims.push(guardrail);
    });
    for round in &mut record.rounds {
        let name = "process_memory_peak_bytes".to_owned();
        round.readings.insert(name, 123_456_789.0);
    }
    let json = json(&record);
    let guardrail = claim(&json, "guardrail", "saturated");
    assert_eq!(guardrail["fix"], 123_456_789.0);
    assert_eq!(guardrail["unit"], "bytes");
    assert_eq!(guardrail["bound"], "fix <= 268435456");
    assert_eq!(guardrail["holds"], true);
    let table = summary(&record).table();
    let line = "Guardrail peak memory of the process: 118 MiB in the problem, 118 MiB in the \
                solution; claimed: at most 256 MiB in the solution.";
    has(&on_one_line(&table), &[line]);
}

#[test]
fn a_run_without_figures_keeps_its_keys() {
    let whole = json(&record());
    let mut record = record();
    record.rounds.retain(|round| round.purpose == Purpose::Law);
    let json = json(&record);
    assert_eq!(json["verdict"], "invalid");
    assert_eq!(keys(&json), keys(&whole));
    let effect = claim(&json, "effect", "saturated");
    assert_eq!(keys(effect), keys(claim(&whole, "effect", "saturated")));
    for key in ["ratio", "interval", "problem", "fix"] {
        assert!(effect[key].is_null(), "{key}");
    }
    assert_eq!(effect["holds"], false);
    assert!(claim(&json, "root_cause", "saturated")["problem"].is_null());
    assert!(claim(&json, "prediction", "published")["measured"].is_null());
    assert!(summary(&record).table().contains("INVALID: too few rounds"));
}

#[test]
fn the_table_fits_a_terminal_and_the_answer_comes_first() {
    let summary = summary(&record());
    let (table, details) = (summary.table(), summary.details());
    println!("{table}{details}");
    for line in table.lines().chain(details.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line, line.trim_end());
    }
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "Chapter 1: A mutex held across an await");
    assert!(lines[2].starts_with("Verdict     PROVED: requests per second"));
    has(
        &on_one_line(&table),
        &[
            "Root cause peak calls in flight inside the database: 1 in the problem, 1,000 in the solution; claimed: at most 1 in the problem, at least 500 in the solution.",
            "Effect requests per second: 20.0 in the problem, 17,8",
            "times better (95 % interval",
            "noise floor",
            "Report target/workshop/chapter1/report.html",
        ],
    );
    has(
        &on_one_line(&details),
        &[
            "Prediction Little's law",
            "predicts 1,000 times",
            "predicts 273 times; 265 (264 to 266) was measured, 2.7 % apart (claimed: at most 10 %).",
            "embedded, 1,000 users; it used at most 31 %",
            "Published by others: 19.5 (lock held across the call, requests per second);",
        ],
    );
}

fn on_one_line(table: &str) -> String {
    table.split_whitespace().collect::<Vec<_>>().join(" ")
}
