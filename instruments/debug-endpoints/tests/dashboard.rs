//! The dashboard for Grafana: it asks for nothing that the metrics do not have.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use common::{ask, service};
use debug_endpoints::{DebugEndpoints, Incidents};
use serde_json::Value;

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../grafana/dashboard.json")).expect("JSON")
}

/// Returns the strings of a list's elements under this key.
fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("an array");
    let texts = list.iter().map(|one| one[key].as_str());
    texts.map(|text| text.expect(key)).collect()
}

/// Returns the queries of all panels and variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        queries.extend(texts(&panel["targets"], "expr"));
    }
    for variable in dashboard["templating"]["list"].as_array().expect("some") {
        // The list of data sources is no query of metrics.
        queries.extend(variable["query"]["query"].as_str());
    }
    queries.into_iter().map(str::to_owned).collect()
}

/// Returns the metrics in a query: names that are no function, no label and no word of `PromQL`.
fn metrics_of(query: &str) -> BTreeSet<String> {
    let mut plain = String::new();
    // Labels, their values and ranges stand in brackets.
    let mut depth = 0_u32;
    for letter in query.chars() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    // `by (route, wait)` names labels; `label_values(metric, label)` ends with one.
    while let Some(at) = plain.find(" by (") {
        let end = plain[at..].find(')').expect("it is closed");
        plain.replace_range(at..=at + end, " ");
    }
    if plain.starts_with("label_values(") {
        plain = plain.split(',').next().unwrap_or_default().to_owned();
    }
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut metrics = BTreeSet::new();
    let mut rest = plain.as_str();
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_alphabetic()) {
        let name = &rest[at..];
        let end = name.find(|letter| !is_of_name(letter));
        let (name, after) = name.split_at(end.unwrap_or(name.len()));
        let is_function = after.trim_start().starts_with('(');
        if !is_function && name != "sum" && name != "max" {
            metrics.insert(name.to_owned());
        }
        rest = after;
    }
    metrics
}

#[test]
fn names_of_metrics_are_found_in_queries() {
    let query = "topk(10, sum by (route) (rate(a_total{x=\"b\"}[5m]))) / on_time";
    let metrics: Vec<_> = metrics_of(query).into_iter().collect();
    assert_eq!(metrics, ["a_total", "on_time"]);
    assert!(metrics_of("label_values(c{x=\"b\"}, job)").contains("c"));
}

#[test]
fn every_metric_that_a_panel_asks_for_is_there() {
    let (_runtime, own, admin) = service(
        || {
            let debug = DebugEndpoints::new().record_incidents(Incidents::new());
            debug.count_waits()
        },
        |debug| {
            let slow = async || {
                tokio::time::sleep(Duration::from_millis(50)).await;
                "tea"
            };
            let app = Router::new().route("/tea", get(slow));
            app.layer(debug.layer())
        },
    );
    let mut asked = BTreeSet::new();
    for query in queries(&dashboard()) {
        let metrics = metrics_of(&query);
        assert!(!metrics.is_empty(), "{query}");
        asked.extend(metrics);
    }
    assert!(asked.len() >= 10, "{asked:?}");
    // A sample has to fall on a request, and what it waits for needs a name.
    let end = Instant::now() + Duration::from_secs(100);
    loop {
        assert_eq!(ask(own, "/tea").status, 200);
        let text = ask(admin, "/debug/metrics").text();
        let is_there = |name: &&String| {
            let mut lines = text.lines();
            lines.any(|line| line.split(['{', ' ']).next() == Some(name.as_str()))
        };
        let missing: Vec<_> = asked.iter().filter(|name| !is_there(name)).collect();
        if missing.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "{missing:?} in {text}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn grafana_can_read_it() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36));
    for key in ["title", "uid"] {
        let text = dashboard[key].as_str().expect(key);
        assert!(!text.is_empty() && text.len() <= 40, "{key}");
    }
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        assert_eq!(panel["type"], "timeseries");
        let place = |key| panel["gridPos"][key].as_u64().expect("a number");
        assert!(place("x") + place("w") <= 24, "{panel}");
        for row in place("y")..place("y") + place("h") {
            for column in place("x")..place("x") + place("w") {
                assert!(taken.insert((row, column)), "it lies on another: {panel}");
            }
        }
        let mut letters = BTreeSet::new();
        for letter in texts(&panel["targets"], "refId") {
            assert!(letters.insert(letter), "{panel}");
        }
        // Every source is the one that the reader chooses.
        assert_eq!(panel["datasource"]["uid"], "${datasource}");
        for text in [&panel["title"], &panel["description"]] {
            assert!(text.as_str().is_some_and(|text| !text.is_empty()));
        }
    }
    let variables = texts(&dashboard["templating"]["list"], "name");
    for query in queries(&dashboard) {
        for used in query.split('$').skip(1) {
            let end = used.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let name = &used[..end.unwrap_or(used.len())];
            let is_known = variables.contains(&name) || name == "__rate_interval";
            assert!(is_known, "{name} in {query}");
        }
    }
}
