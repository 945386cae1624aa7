//! Tests of how `duel compare` reports the counters of two services.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use terminal::testing::once_in_three;

/// Starts a service that counts `queries` for each request and runs until the test process ends; returns its URL.
fn serve(queries: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let requests = Arc::clone(&requests);
            std::thread::spawn(move || answer(&stream.unwrap(), queries, &requests));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: &TcpStream, queries: u64, requests: &AtomicU64) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let body = if first.contains("/metrics") {
            let served = requests.load(Ordering::SeqCst);
            let queries = served * queries;
            format!(
                "# TYPE queries_total counter\nqueries_total{{kind=\"read\"}} {queries}\n\
                 served_total {served}\nidle_connections {queries}\n"
            )
        } else {
            std::thread::sleep(Duration::from_millis(4));
            requests.fetch_add(1, Ordering::SeqCst);
            "right".to_owned()
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Compares two such services; returns the text on standard error, and the JSON.
fn compare(folder: &Path) -> (String, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_duel"))
        .args(["compare", "--running", &serve(12), &serve(2), "--get", "/"])
        .args("--users 4 --seconds 0.2 --warm-up 0 --margin 50% --at-most 60".split(' '))
        .args(["--format", "json", "--markdown", "summary.md"])
        .current_dir(folder)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).expect(&err);
    (err, value)
}

#[test]
fn a_counter_that_the_change_moved_is_told_without_being_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    // Requests in flight at the end of a slice may be counted or not. They are a large share if the slice had few
    // requests because the machine stood still.
    let is_near = |counter: &Value| {
        let told = [("base", 12.0), ("change", 2.0), ("ratio", 1.0 / 6.0)];
        told.into_iter().all(|(key, right)| {
            let told = counter[key].as_f64();
            told.is_some_and(|told| (told / right - 1.0).abs() < 0.5)
        })
    };
    let are_few = |value: &Value| value["rounds"].as_u64().unwrap() < 3;
    let (err, value) = once_in_three(|| {
        let (err, value) = compare(folder.path());
        let is_told = match &value["counters"].as_array().unwrap()[..] {
            [one] => one["counter"] == "queries_total" && is_near(one),
            _ => false,
        };
        (is_told || are_few(&value), (err, value))
    });
    // A busy machine may leave fewer rounds.
    if are_few(&value) {
        return;
    }
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).unwrap();
    let page = folder.path().join("target/duel/compare.html");
    let page = std::fs::read_to_string(page).unwrap();
    for (text, row) in [
        (err, "queries_total  "),
        (summary, "| `queries_total` | "),
        (page, "queries_total"),
    ] {
        assert!(
            text.contains("What else changed") && text.contains(row),
            "{text}"
        );
    }
}
