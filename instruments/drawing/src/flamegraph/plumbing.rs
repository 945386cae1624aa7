//! Stacks without the frames that carry every request. Consecutive frames of the runtime and the framework become
//! one box, so that the reader's own frames stand out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::folded::{NoCount, stacks};
use ecosystem::{LANGUAGE, carriers, crate_of, place_of, starts_thread};

/// Modules of the listener and its connections, which carry requests as well. The rest of their crate does work.
const LISTENER: [&str; 2] = ["lab::listener::", "lab::connection::"];

/// A frame as it is, or a run of frames that becomes one box, with the places of their crates among the carriers.
enum Part<'a> {
    Frame(&'a str),
    Run(BTreeSet<usize>),
}

/// Folds runs of such frames: two frames or more become one, named after their crates. The first runs of all stacks
/// get one name together.
pub(super) fn fold(folded: &str) -> Result<String, NoCount> {
    let mut parsed = Vec::new();
    // The runs at the bottom get one name, so that the box below everything is one.
    let mut lowest = BTreeSet::new();
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        let parts = parts(frames);
        let first = parts.iter().position(|part| matches!(part, Part::Run(_)));
        if let Some(Part::Run(places)) = first.map(|first| &parts[first]) {
            lowest.extend(places);
        }
        parsed.push((parts, first, count));
    }
    let mut merged: BTreeMap<String, u64> = BTreeMap::new();
    for (parts, first, count) in &parsed {
        let frames = parts.iter().enumerate().map(|(place, part)| match part {
            Part::Run(_) if Some(place) == *first => named(&lowest),
            Part::Run(places) => named(places),
            Part::Frame(frame) => (*frame).to_owned(),
        });
        let mut frames: Vec<String> = frames.collect();
        // The C library has two names for some functions.
        frames.dedup();
        *merged.entry(frames.join(";")).or_default() += count;
    }
    Ok(lines(&merged))
}

/// Shortens stacks to what their picture shows, because a runtime's long names are most of a file of stacks. A run that
/// becomes one box keeps its first frame, the first frame of each crate, its last frame, and the frames whose names
/// contain one of `kept`. A function that calls itself is kept once. Pictures of both have the same boxes.
///
/// # Errors
///
/// Returns an error if a line has no count.
pub fn shortened(folded: &str, kept: &[&str]) -> Result<String, NoCount> {
    let mut merged: BTreeMap<String, u64> = BTreeMap::new();
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        let frames: Vec<&str> = frames.split(';').collect();
        let mut short: Vec<&str> = Vec::new();
        let mut rest = frames.as_slice();
        while let Some(first) = rest.first() {
            let length = run(rest).max(1);
            if length > 1 {
                short.extend(shortened_run(&rest[..length], kept));
            } else if short.last() != Some(first) {
                short.push(first);
            }
            rest = &rest[length..];
        }
        *merged.entry(short.join(";")).or_default() += count;
    }
    Ok(lines(&merged))
}

fn shortened_run<'a>(run: &[&'a str], kept: &[&str]) -> Vec<&'a str> {
    let mut crates = BTreeSet::new();
    let mut short = Vec::new();
    for (at, frame) in run.iter().enumerate() {
        let is_first_of_crate = carrier(frame).is_some() && crates.insert(crate_of(frame));
        let is_end = at == 0 || at + 1 == run.len();
        if is_first_of_crate || is_end || kept.iter().any(|name| frame.contains(name)) {
            short.push(*frame);
        }
    }
    short
}

fn lines(counts: &BTreeMap<String, u64>) -> String {
    let mut text = String::new();
    for (frames, count) in counts {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{frames} {count}");
    }
    text
}

fn parts(frames: &str) -> Vec<Part<'_>> {
    let frames: Vec<&str> = frames.split(';').collect();
    let mut parts = Vec::new();
    let mut rest = frames.as_slice();
    while let Some(first) = rest.first() {
        let length = run(rest);
        // The frames that start a thread stand behind the thread's name.
        let start = rest.iter().take_while(|frame| is_between(frame)).count();
        let taken = if length >= 2 {
            let mut places = BTreeSet::new();
            for frame in &rest[..length] {
                if let Some(place) = carrier(frame) {
                    places.insert(place);
                }
            }
            parts.push(Part::Run(places));
            length
        } else if parts.len() <= 1 && (2..rest.len()).contains(&start) {
            parts.push(Part::Frame(LANGUAGE));
            start
        } else {
            parts.push(Part::Frame(first));
            1
        };
        rest = &rest[taken..];
    }
    parts
}

/// Returns the number of frames at the beginning that are carriers or lie between two of them. Frames of the standard
/// library above the last carrier stay, because they work for somebody. Those below a closure only call it.
fn run(frames: &[&str]) -> usize {
    let mut length = 0;
    for (place, frame) in frames.iter().enumerate() {
        if carrier(frame).is_some() {
            length = place + 1;
        } else if !is_between(frame) {
            return if length > 0 { place } else { 0 };
        }
    }
    length
}

/// Returns the place of a frame's crate among the carriers, if it is of the runtime or a framework.
fn carrier(frame: &str) -> Option<usize> {
    let is_listener = LISTENER.iter().any(|module| frame.contains(module));
    let krate = if is_listener {
        "hyper"
    } else {
        crate_of(frame)
    };
    place_of(krate).filter(|place| ![LANGUAGE, ""].contains(&carriers()[*place].part))
}

fn is_between(frame: &str) -> bool {
    let krate = crate_of(frame);
    if starts_thread(krate) {
        return true;
    }
    match place_of(krate) {
        Some(place) => carriers()[place].part == LANGUAGE,
        None => false,
    }
}

fn named(places: &BTreeSet<usize>) -> String {
    let mut names: Vec<&str> = places.iter().map(|place| carriers()[*place].part).collect();
    names.dedup();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_stacks_give_the_same_boxes() {
        let folded = "tokio worker;clone3;start_thread;tokio::runtime::run;core::ops::call;tokio::task::poll;\
                      hyper::server::poll;hyper::dispatch;app::read;core::slice::sort;core::slice::sort;memcmp 7\n\
                      tokio worker;tokio::runtime::run;tokio::task::poll;tokio::task::BlockingTask::poll;app::sum 2\n\
                      main;std::rt::start;app::main;tokio::park;tokio::park;epoll_wait 1\n";
        let short = shortened(folded, &["BlockingTask"]).expect("stacks with counts");
        assert_eq!(fold(&short), fold(folded));
        assert!(short.len() < folded.len(), "{short}");
        for kept in [
            "BlockingTask",
            "hyper::server",
            "app::read;core::slice::sort;memcmp 7",
        ] {
            assert!(short.contains(kept), "{kept} is not in {short}");
        }
        assert!(!short.contains("tokio::task::poll"), "{short}");
        assert_eq!(shortened(&short, &["BlockingTask"]), Ok(short));
    }
}
