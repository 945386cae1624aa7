//! The report stands alone and says the verdict first.

use crate::report::captured::{capture, keep};
use course::report::capture::Capture;

fn html(capture: &Capture, name: &str) -> String {
    let html = course::report::html::page(capture).unwrap();
    keep(name, &html);
    html
}

#[test]
fn the_verdict_comes_first_and_everything_stands_in_one_file() {
    let html = html(&capture(), "report.html");
    let mut from = 0;
    for part in [
        "<h1>Chapter 1: A mutex held across an await</h1>",
        "proved</strong>",
        "Predicted and measured",
        "Every round",
        "Where the time goes",
        "All rounds",
        "Where it was measured",
        "Published elsewhere",
        "Repeat it",
        "cargo workshop prove 1",
    ] {
        let at = html[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part} is not in its place"));
    }
    // It needs no network and no other file.
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"));
    assert!(!html.contains("@import") && !html.replace("url(#", "").contains("url("));
    assert!(html.contains("default-src 'none'"));
    // Four profiles and two differences, of which two are strips without a script; two plots. Each has words
    // for readers who do not see it.
    for (part, count) in [
        ("<iframe", 6),
        ("<iframe title=\"Flamegraph", 6),
        ("&lt;script&gt;init()", 4),
        ("<img src=\"data:image/svg+xml;base64,", 2),
        (" alt=\"", 2),
    ] {
        assert_eq!(html.matches(part).count(), count, "{part}");
    }
}

#[test]
fn what_servers_say_is_text_not_markup() {
    let mut capture = capture();
    capture.record.rounds[3].outcome.wrong_answers = 1;
    capture.record.rounds[3].outcome.first_wrong_answer = Some("<script>alert(1)</script>".into());
    let html = html(&capture, "invalid.html");
    assert!(!html.contains("<script>alert"));
    assert!(html.contains("invalid</strong>"));
}

#[test]
fn an_empty_run_still_has_a_report() {
    let mut capture = capture();
    capture.record.rounds.clear();
    capture.record.profiles.clear();
    let html = html(&capture, "empty.html");
    assert!(html.contains("Too few rounds"));
    assert!(!html.contains("<iframe") && !html.contains("<img"));
}
