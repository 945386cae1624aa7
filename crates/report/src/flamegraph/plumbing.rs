//! Stacks without what carries every request: a run of the runtime's and the framework's frames becomes
//! one box, so that the reader's own frames are seen. The folded file keeps all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use analysis::folded::{NoCount, stacks};

/// Crates that carry requests, by the beginning of their name, and what they are called in a box. A box
/// names them in this order.
const CARRIERS: [(&str, &str); 8] = [
    ("tokio", "tokio"),
    ("mio", "tokio"),
    ("hyper", "hyper"),
    ("http", "hyper"),
    ("warp", "warp"),
    ("axum", "axum"),
    ("tower", "axum"),
    ("futures", "futures"),
];

/// What lies between their frames, and what starts a thread.
const BETWEEN: [&str; 12] = [
    "std",
    "core",
    "alloc",
    "scoped_tls",
    "await_profile",
    "clone3",
    "start_thread",
    "_start",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "__rustc",
    "main",
];

/// What starts a thread, as one box.
const THREAD: &str = "std";

/// The listener and its connections, which carry requests as well; the rest of that crate works.
const LISTENER: [&str; 2] = ["lab::listener::", "lab::connection::"];

/// Folds runs of such frames. Two frames or more become one, named by the crates of all runs that begin
/// at the same place of a thread's stacks: below the first other frame, or above it.
pub(super) fn fold(folded: &str) -> Result<String, NoCount> {
    let mut parsed = Vec::new();
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        parsed.push((parts(frames), count));
    }
    // The runs at the bottom get one name, so that the box below everything is one.
    let mut lowest = [false; CARRIERS.len()];
    for (parts, _) in &parsed {
        if let Some(carriers) = parts.iter().find_map(Part::carriers) {
            lowest = or(lowest, carriers);
        }
    }
    let mut merged: BTreeMap<String, u64> = BTreeMap::new();
    for (parts, count) in &parsed {
        let mut is_lowest = true;
        let frames = parts.iter().map(|part| match part.carriers() {
            Some(_) if std::mem::take(&mut is_lowest) => named(lowest),
            Some(carriers) => named(carriers),
            None => part.frame().to_owned(),
        });
        let mut frames: Vec<String> = frames.collect();
        // What the C library calls by two names.
        frames.dedup();
        *merged.entry(frames.join(";")).or_default() += count;
    }
    let mut text = String::new();
    for (frames, count) in merged {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{frames} {count}");
    }
    Ok(text)
}

/// A frame as it is, or a run of frames that becomes one box.
enum Part<'a> {
    Frame(&'a str),
    Run([bool; CARRIERS.len()]),
}

impl Part<'_> {
    fn carriers(&self) -> Option<[bool; CARRIERS.len()]> {
        match self {
            Self::Frame(_) => None,
            Self::Run(carriers) => Some(*carriers),
        }
    }

    fn frame(&self) -> &str {
        match self {
            Self::Frame(frame) => frame,
            Self::Run(_) => "",
        }
    }
}

fn parts(frames: &str) -> Vec<Part<'_>> {
    let frames: Vec<&str> = frames.split(';').collect();
    let mut parts = Vec::new();
    let mut rest = frames.as_slice();
    while let Some(first) = rest.first() {
        let length = run(rest);
        // What starts a thread, behind the thread's name.
        let start = rest.iter().take_while(|frame| is_between(frame)).count();
        if length >= 2 {
            let carriers = rest[..length].iter().filter_map(|frame| carrier(frame));
            let mut all = [false; CARRIERS.len()];
            carriers.for_each(|one| all[one] = true);
            parts.push(Part::Run(all));
            rest = &rest[length..];
        } else if parts.len() <= 1 && (2..rest.len()).contains(&start) {
            parts.push(Part::Frame(THREAD));
            rest = &rest[start..];
        } else {
            parts.push(Part::Frame(first));
            rest = &rest[1..];
        }
    }
    parts
}

/// How many frames at the beginning are carriers or lie between two of them. What the standard library
/// does above the last is work for somebody, and stays; what it does below somebody's closure calls it.
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

/// The place of a frame's crate in [`CARRIERS`].
fn carrier(frame: &str) -> Option<usize> {
    if LISTENER.iter().any(|module| frame.contains(module)) {
        return Some(2);
    }
    let owner = owner(frame);
    CARRIERS
        .iter()
        .position(|(name, _)| owner.starts_with(name))
}

fn is_between(frame: &str) -> bool {
    BETWEEN.contains(&owner(frame))
}

/// The crate of a frame; the whole name where it has none. Of an implementation it is the type's, and
/// the trait's if the type is a parameter.
fn owner(frame: &str) -> &str {
    let crate_of = |path: &str| -> usize {
        path.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(path.len())
    };
    let mut path = frame;
    loop {
        let before = path;
        for mark in ["<", "&", "(", "[", "*", "mut ", "const ", "dyn ", "impl "] {
            path = path.strip_prefix(mark).unwrap_or(path);
        }
        if path == before {
            break;
        }
    }
    let name = &path[..crate_of(path)];
    match path.split_once(" as ") {
        Some((_, of_trait)) if !path[name.len()..].starts_with("::") => {
            &of_trait[..crate_of(of_trait)]
        }
        _ => name,
    }
}

fn or<const N: usize>(mut one: [bool; N], other: [bool; N]) -> [bool; N] {
    for (one, other) in one.iter_mut().zip(other) {
        *one |= other;
    }
    one
}

fn named(carriers: [bool; CARRIERS.len()]) -> String {
    let chosen = CARRIERS.iter().zip(carriers);
    let mut names: Vec<&str> = chosen
        .filter(|(_, is)| *is)
        .map(|((_, name), _)| *name)
        .collect();
    names.dedup();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_a_request_is_one_box() {
        let stacks = "worker;clone3;std::thread::start;tokio::run;<F as core::ops::FnOnce>::call;\
                      hyper::poll;chapter1::read;tokio::sync::Mutex::lock;core::fmt::write 3\n\
                      worker;clone3;tokio::run;mio::poll;epoll_wait 2\n";
        assert_eq!(
            fold(stacks).unwrap(),
            "worker;tokio, hyper;chapter1::read;tokio::sync::Mutex::lock;core::fmt::write 3\n\
             worker;tokio, hyper;epoll_wait 2\n"
        );
    }

    #[test]
    fn a_frame_belongs_to_the_crate_of_its_type() {
        for (frame, is) in [
            ("<alloc::boxed::Box<dyn A> as B>::call", "alloc"),
            (
                "<T as futures_util::fns::FnMut1<A>>::call_mut",
                "futures_util",
            ),
            ("<&mut hyper::Body as http_body::Body>::poll", "hyper"),
            ("epoll_wait", "epoll_wait"),
            ("std::thread::start", "std"),
        ] {
            assert_eq!(owner(frame), is, "{frame}");
        }
    }
}
