//! Pictures of stacks, and what is read off them.

use analysis::folded::IDLE;
use analysis::folded::{self, NoCount};
use await_profile::drawing::NOTHING;
use fuzz::Fuzz;
use measurement::profile::{Profile, ProfileKind};
use report::flamegraph::{self, FlamegraphError, Picture};

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

#[test]
fn frames_titles_and_counts_are_in_the_picture() {
    let svg = flamegraph::draw(WAITING, &picture(ProfileKind::Await, 0)).unwrap();
    for part in [
        "problem: what requests wait for",
        "1,000 samples",
        "Mutex::lock (980 samples, 98.00%)",
        "id=\"search\"",
        "id=\"unzoom\"",
    ] {
        assert!(svg.contains(part), "{part}");
    }
}

/// What inferno's script says is changed in three places; a new version that
/// says it otherwise must not bring the faults back unnoticed.
#[test]
fn the_script_survives_frames_without_address_or_width() {
    let svg = flamegraph::draw(WAITING, &picture(ProfileKind::Await, 0)).unwrap();
    assert_eq!(svg.matches("history.replaceState(").count(), 1);
    assert!(svg.contains("try { history.replaceState("));
    assert!(svg.contains("Math.max(1, svg.width.baseVal.value - xpad * 2)"));
    assert!(!svg.contains("opacity:0.1"));
}

#[test]
fn the_same_stacks_give_the_same_bytes() {
    let turned = "handler;sleep 20\nhandler;Mutex::lock 980\n";
    for kind in [ProfileKind::Cpu, ProfileKind::Await, ProfileKind::Heap] {
        let one = flamegraph::draw(WAITING, &picture(kind, 7)).unwrap();
        assert_eq!(one, flamegraph::draw(WAITING, &picture(kind, 7)).unwrap());
        assert_eq!(one, flamegraph::draw(turned, &picture(kind, 7)).unwrap());
    }
}

#[test]
fn too_few_samples_are_a_strip_and_idle_cpus_a_box() {
    let cpu = |idle| picture(ProfileKind::Cpu, idle);
    let strip = flamegraph::draw("main;poll 9\n", &cpu(741)).unwrap();
    assert!(strip.contains("idle: 9 samples in 3 s<"));
    assert!(!strip.contains("id=\"frames\""));
    let strip = flamegraph::draw("main;poll 9\n", &cpu(1)).unwrap();
    assert!(strip.contains("too few to draw: 9 samples in 3 s<"));
    let drawn = flamegraph::draw("main;poll 300\n", &cpu(700)).unwrap();
    assert!(drawn.contains("[idle] (700 samples, 70.00%)"), "{IDLE}");
    let compared = flamegraph::draw_difference(("a 3\n", 0), ("a 300\n", 0), &cpu(0)).unwrap();
    assert!(compared.contains("3 before, 300 samples after: too few to compare"));
}

#[test]
fn own_frames_are_seen_and_pointed_at() {
    let stacks = "tokio-worker;clone3;tokio::run;hyper::poll;chapter1::read;clone;memcpy 300\n\
                  tokio-worker;clone3;tokio::run;mio::poll;epoll_wait 100\n";
    let svg = flamegraph::draw(stacks, &picture(ProfileKind::Cpu, 0)).unwrap();
    for part in [
        "tokio, hyper (400 samples, 100.00%)",
        "chapter1::read ① (300 samples, 75.00%)",
        ">① here, 75 %: chapter1::read</text>",
        ">② here, 75 %: memcpy</text>",
        ">③ not here, 25 %: epoll_wait</text>",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    // As high as its first tag says, lines below it included.
    let height = |from: &str| -> u32 {
        let (_, rest) = svg.split_once(from).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let last = height("<text x=\"10\" y=\"");
    assert!(last < height(" height=\""), "{last}");
    assert_eq!(svg.matches("③ not here").count(), 1);
}

#[test]
fn nothing_at_all_is_said_not_failed() {
    let svg = flamegraph::draw("\n", &picture(ProfileKind::Await, 0)).unwrap();
    assert!(svg.contains(NOTHING));
}

#[test]
fn a_difference_shows_growth_and_survives_emptiness() {
    let cpu = picture(ProfileKind::Cpu, 0);
    let svg =
        flamegraph::draw_difference(("a 200\nb 200\n", 0), ("a 300\nb 100\n", 0), &cpu).unwrap();
    assert!(svg.contains("a (300 samples, 75.00%; +25.00%)"));
    let waits = picture(ProfileKind::Await, 0);
    flamegraph::draw_difference(("", 750), ("a 300\n", 450), &waits).unwrap();
    flamegraph::draw_difference(("", 0), ("", 0), &waits).unwrap();
    let again =
        || flamegraph::draw_difference(("x;a 1\ny 2\n", 5), ("y 9\nx;b 3\n", 2), &waits).unwrap();
    assert_eq!(again(), again());
}

#[test]
fn a_line_without_a_count_is_named() {
    let error = flamegraph::draw("a;b 3\na;c\n", &picture(ProfileKind::Cpu, 0)).unwrap_err();
    assert_eq!(
        error,
        FlamegraphError::NoCount(NoCount {
            line: 2,
            text: "a;c".into()
        })
    );
    assert!(error.to_string().contains("take the profile again"));
}

#[test]
fn frame_names_with_spaces_and_brackets_survive() {
    let stacks = "<impl Future for Sleep as A>::poll;core::ops<&str> 5\n";
    let svg = flamegraph::draw(stacks, &picture(ProfileKind::Await, 0)).unwrap();
    assert!(svg.contains("&lt;impl Future for Sleep as A&gt;::poll (5 samples, 100.00%)"));
}

/// inferno reads `a 7 5` as a stack `a` that was counted 7 times before and 5 times after.
#[test]
fn names_that_look_like_counts_or_comments_are_drawn() {
    let stacks = "pool;worker 7 5\npool;v 1.5 2\n# note;x 3\n 4\n# 6 7\n# 8\n";
    let svg = flamegraph::draw(stacks, &picture(ProfileKind::Await, 0)).unwrap();
    for part in [
        "<title>worker\u{a0}7 (5 samples",
        "<title>v\u{a0}1.5 (2 samples",
        "<title>\u{2060}# note (3 samples",
        "<title>[no name] (4 samples",
        "<title>\u{2060}#\u{a0}6 (7 samples",
        "<title>\u{2060}# (8 samples",
        "total_samples=\"29\"",
    ] {
        assert!(svg.contains(part), "{part}");
    }
}

/// A recursion without an end, by a profiler that takes all of it.
#[test]
fn a_stack_is_drawn_however_deep_it_is() {
    let deep = "walk;".repeat(200_000);
    let stacks = format!("{deep}leaf 300\nmain 100\n");
    for kind in [ProfileKind::Cpu, ProfileKind::Await] {
        let svg = flamegraph::draw(&stacks, &picture(kind, 0)).unwrap();
        is_a_picture(&svg, 400);
        assert!(svg.contains("[deeper] (300 samples") && svg.len() < 1 << 20);
    }
}

/// The picture's width is all that was counted, and it is XML: no character of a name that it has none
/// for, no tag that a name opened.
#[track_caller]
fn is_a_picture(svg: &str, all: u64) {
    let told = format!("total_samples=\"{}\"", all.max(1));
    assert!(
        svg.contains("too few") || svg.contains("idle: ") || svg.contains(&told),
        "not {told}"
    );
    let is_xml =
        |c: char| c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}' || matches!(c, '\t' | '\n' | '\r');
    assert!(svg.chars().all(is_xml));
    for (open, close) in [
        ("<g", "</g>"),
        ("<title", "</title>"),
        ("<text", "</text>"),
        ("<svg", "</svg>"),
    ] {
        let begun = svg.matches(open).count() - svg.matches("<glyph").count();
        assert_eq!(begun, svg.matches(close).count(), "{open}");
    }
    assert!(svg.matches("<script").count() <= 1);
}

#[test]
fn damaged_stacks_are_refused_or_drawn() {
    let fuzz = Fuzz {
        corpus: fuzz::files("../analysis/tests/stacks"),
        telling: &[
            "\n",
            ";",
            ";;",
            " ",
            "[idle] 5\n",
            "# ",
            "<",
            ">",
            "&",
            "\"",
            "</text>",
            "<script>",
            "]]>",
            " 5",
            "::",
            "tokio::",
            "hyper::",
            "chapter1::",
            "std::",
            " as ",
            "\0",
            "é",
            "\u{ffff}",
            "①",
        ],
        copies: 700,
    };
    let mut drawn = 0;
    let mut last = String::new();
    fuzz.each(|bytes| {
        let folded = String::from_utf8_lossy(bytes);
        let total = folded::total(&folded);
        for kind in [ProfileKind::Cpu, ProfileKind::Await] {
            let picture = picture(kind, 7);
            match flamegraph::draw(&folded, &picture) {
                Ok(svg) => {
                    is_a_picture(&svg, total.clone().unwrap() + 7);
                    drawn += 1;
                }
                Err(error) => assert!(total.is_err(), "{error}"),
            }
        }
        let waits = picture(ProfileKind::Await, 0);
        match flamegraph::draw_difference((&last, 0), (&folded, 0), &waits) {
            Ok(svg) => is_a_picture(&svg, total.clone().unwrap()),
            Err(error) => assert!(total.is_err(), "{error}"),
        }
        if total.is_ok() {
            last = folded.into_owned();
        }
    });
    assert!(drawn > 100, "only {drawn} were drawn");
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

#[test]
fn a_capture_says_how_busy_the_cpus_were() {
    let mut profile = Profile {
        variant: "problem".into(),
        kind: ProfileKind::Cpu,
        scenario: "saturated".into(),
        seconds: 3.0,
        samples: 9,
        capacity: Some(750),
        frames_share: None,
        unit: "4 ms of CPU time".into(),
    };
    let of = |profile: &Profile| Picture::of(profile, "chapter1");
    assert_eq!(
        of(&profile).subtitle.as_deref(),
        Some("scenario saturated, 9 samples, 1.2 % busy")
    );
    assert_eq!(of(&profile).idle, 741);
    profile.samples = 800;
    assert_eq!(of(&profile).idle, 0);
    assert!(of(&profile).subtitle.unwrap().contains("100 %"));
}
