//! The book as it is built.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::running::{Running, free_port, wait_for};
use crate::{built, cargo, command, root, succeed, tool, turn, verdicts};

fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let mdbook = tool("bin/mdbook", "cargo workshop setup mdbook");
    let said = succeed(command(mdbook, "build --dest-dir").arg(&folder));
    let warns = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    assert_eq!(said.lines().find(warns), None);
    folder
}

#[test]
#[ignore = "needs mdbook: cargo workshop setup mdbook"]
fn mdbook_builds_it_without_a_warning() {
    let _turn = turn();
    build();
}

/// As the page Measure of chapter 1 says: open Locust's page, and press Start.
#[test]
#[ignore = "needs Chromium and Locust (cargo workshop setup locust)"]
fn locusts_page_starts_the_load() {
    let _turn = turn();
    let (port, admin) = (free_port(), free_port());
    succeed(&mut cargo("build --package chapter1"));
    let words = format!("problem --port {port} --admin-port {admin}");
    let mut service = command(built("chapter1"), &words);
    let _service = Running(service.stdout(Stdio::null()).spawn().unwrap());
    wait_for(&port);
    let python = tool("venv/bin/python", "cargo workshop setup locust");
    let mut page = command(python, "locust/page.py --host");
    page.arg(format!("http://127.0.0.1:{port}"));
    succeed(page.env("PYTHONDONTWRITEBYTECODE", "1"));
}

/// Every page, and the report of a proof.
#[test]
#[ignore = "needs Chromium, mdbook and Locust's Python (cargo workshop setup mdbook locust), and minutes"]
fn book_and_report_work_in_a_browser() {
    let _turn = turn();
    let (book, _) = (build(), verdicts::proof());
    let report = root().join(".workshop/reports/chapter1/report.html");
    let options = [
        "--book".as_ref(),
        book.as_path(),
        "--report".as_ref(),
        &report,
    ];
    succeed(browser_test().args(options));
}

#[test]
#[ignore = "needs Chromium and Locust's Python (cargo workshop setup locust), and minutes"]
fn weekly_the_browser_test_notices_damage() {
    let _turn = turn();
    succeed(browser_test().arg("--self-test"));
}

fn browser_test() -> std::process::Command {
    // The driver of the browser lies beside Locust.
    let python = tool("venv/bin/python", "cargo workshop setup locust");
    let mut test = command(python, "tests/browser/check.py");
    test.env("PYTHONDONTWRITEBYTECODE", "1");
    test
}
