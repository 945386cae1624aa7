//! Pictures of stacks, and the figures read from them.

use drawing::flamegraph::{self, FlamegraphError, Picture};
use drawing::folded::{self, NoCount};
use statistics::profile::ProfileKind::{self, Await, Cpu};

use crate::report::captured::has;

const WAITING: &str = "handler;Mutex::lock 980\nhandler;sleep 20\n";

fn picture(kind: ProfileKind, idle: u64) -> Picture {
    Picture {
        kind,
        title: "problem: what requests wait for".into(),
        subtitle: Some("1,000 samples".into()),
        unit: "samples".into(),
        idle,
        seconds: 3.0,
        own: "chapter1".into(),
    }
}

#[track_caller]
fn draw(stacks: &str, kind: ProfileKind, idle: u64) -> String {
    flamegraph::draw(stacks, &picture(kind, idle)).unwrap()
}

/// Pictures of real services are committed with the captures; these show stacks that no service had.
#[test]
fn odd_names_few_samples_and_none_are_drawn() {
    // inferno reads `a 7 5` as a stack `a` that was counted 7 times before and 5 times after.
    let odd = "pool;worker 7 5\npool;v 1.5 2\n# note;x 3\n 4\n# 6 7\n# 8\n\
               <impl Future for Sleep as A>::poll;core::ops<&str> 5\n";
    let parts = [
        "<title>worker\u{a0}7 (5 samples",
        "<title>v\u{a0}1.5 (2 samples",
        "<title>\u{2060}# note (3 samples",
        "<title>[no name] (4 samples",
        "<title>\u{2060}#\u{a0}6 (7 samples",
        "<title>\u{2060}# (8 samples",
        "&lt;impl Future for Sleep as A&gt;::poll (5 samples",
        "total_samples=\"34\"",
    ];
    has(&draw(odd, Await, 0), &parts);
    has(&draw("\n", Await, 0), &["[nothing sampled]"]);
    let strip = draw("main;poll 9\n", Cpu, 1);
    has(&strip, &["too few to draw: 9 samples in 3 s<"]);
    assert!(!strip.contains("id=\"frames\""));
}

/// inferno's script is changed in three places. A new version with other text there must not bring the faults
/// back unnoticed.
#[test]
fn the_script_survives_frames_without_address_or_width() {
    let svg = draw(WAITING, Await, 0);
    assert_eq!(svg.matches("history.replaceState(").count(), 1);
    let changed = [
        "try { history.replaceState(",
        "Math.max(1, svg.width.baseVal.value - xpad * 2)",
        "var fluiddrawing = true;",
    ];
    has(&svg, &changed);
    let hidden = svg.find("#search { text-anchor:end; opacity:0.1;");
    assert!(hidden.unwrap() < svg.find("#search { opacity:1; }").unwrap());
}

/// A call-out has its mark at the frame, and a line below the frames that says its share.
#[test]
fn call_outs_have_a_line_each() {
    let own = "main;chapter1::read;parse 600\nmain;chapter1::read;sort 300\nmain;other 100\n";
    let svg = draw(own, Cpu, 0);
    let parts = [
        "<title>chapter1::read ① (900 samples",
        ">① here, 90 %: chapter1::read</text>",
        "<title>parse ② (600 samples",
        ">② here, 60 %: parse</text>",
        "<title>other ③ (100 samples",
        ">③ not here, 10 %: other</text>",
    ];
    has(&svg, &parts);
}

#[test]
fn a_difference_survives_emptiness() {
    let change = |before: (&str, u64), after: (&str, u64), kind| {
        flamegraph::draw_difference(before, after, &picture(kind, 0)).unwrap()
    };
    let few = change(("a 3\n", 0), ("a 300\n", 0), Cpu);
    has(&few, &["300 samples against 3: too few to compare"]);
    change(("", 750), ("a 300\n", 450), Await);
    change(("", 0), ("", 0), Await);
    let again = || change(("x;a 1\ny 2\n", 5), ("y 9\nx;b 3\n", 2), Await);
    assert_eq!(again(), again());
}

#[test]
fn a_line_without_a_count_is_named() {
    let error = flamegraph::draw("a;b 3\na;c\n", &picture(Cpu, 0)).unwrap_err();
    let no_count = NoCount {
        line: 2,
        text: "a;c".into(),
    };
    assert!(error.to_string().contains("take the profile again"));
    assert_eq!(error, FlamegraphError::NoCount(no_count));
}

/// The stacks of an endless recursion, from a profiler that records all of it.
#[test]
fn a_stack_is_drawn_however_deep_it_is() {
    let stacks = format!("{}leaf 300\nmain 100\n", "walk;".repeat(200_000));
    for kind in [Cpu, Await] {
        let svg = draw(&stacks, kind, 0);
        is_a_picture(&svg, 400);
        assert!(svg.contains("[deeper] (300 samples") && svg.len() < 1 << 20);
    }
}

#[test]
fn names_of_every_kind_are_drawn() {
    for file in std::fs::read_dir("tests/stacks").unwrap() {
        let stacks = std::fs::read_to_string(file.unwrap().path()).unwrap();
        if let Ok(total) = folded::total(&stacks) {
            for kind in [Cpu, Await] {
                is_a_picture(&draw(&stacks, kind, 7), total + 7);
            }
        }
    }
}

/// Asserts that the picture is as wide as all counts together, and that it is XML. No name may add a
/// character that XML does not have, or open a tag.
#[track_caller]
fn is_a_picture(svg: &str, all: u64) {
    let told = format!("total_samples=\"{}\"", all.max(1));
    let is_strip = svg.contains("too few") || svg.contains("idle: ");
    assert!(is_strip || svg.contains(&told), "not {told}");
    let is_xml =
        |c: char| c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}' || matches!(c, '\t' | '\n' | '\r');
    assert!(svg.chars().all(is_xml));
    for tag in ["g", "title", "text", "svg"] {
        let begun =
            svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
        assert_eq!(begun, svg.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(svg.matches("<script").count() <= 1);
}

#[test]
fn shares_are_read_off_the_stacks() {
    assert_eq!(folded::total(WAITING).unwrap(), 1_000);
    assert_eq!(folded::share_with(WAITING, &["lock"]).unwrap(), Some(0.98));
    assert_eq!(folded::share_with("", &["lock"]).unwrap(), None);
    let leaf = folded::most_frequent_leaf(WAITING).unwrap();
    assert_eq!(leaf, Some(("Mutex::lock".to_owned(), 0.98)));
    assert_eq!(folded::most_frequent_leaf("a 0\n").unwrap(), None);
}
