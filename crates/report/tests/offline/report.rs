//! The report stands alone and says the verdict first.

use crate::captured::{capture, keep};
use report::capture::Capture;

fn html(capture: &Capture, name: &str) -> String {
    let html = report::html::page(capture).unwrap();
    keep(name, &html);
    html
}

#[test]
fn the_verdict_comes_first_and_everything_follows() {
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
}

#[test]
fn it_needs_no_network_and_no_other_file() {
    let html = html(&capture(), "report.html");
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"));
    assert!(!html.contains("@import") && !html.replace("url(#", "").contains("url("));
    assert!(html.contains("default-src 'none'"));
    assert_eq!(
        html.matches("<iframe").count(),
        6,
        "four profiles and two differences"
    );
    let scripts = html.matches("&lt;script&gt;init()").count();
    assert_eq!(
        scripts, 4,
        "too few samples are two strips, without a script"
    );
    assert_eq!(html.matches("data:image/svg+xml;base64,").count(), 2);
}

#[test]
fn pictures_have_words() {
    let html = html(&capture(), "report.html");
    assert_eq!(
        html.matches("<img").count(),
        html.matches(" alt=\"").count()
    );
    assert_eq!(
        html.matches("<iframe").count(),
        html.matches("<iframe title=\"Flamegraph").count()
    );
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
