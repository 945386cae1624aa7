//! The pictures of the front page and of the gallery, drawn from recorded stacks without the names
//! that give a chapter away. `UPDATE_EXPECT=1 cargo test -p workshop --test commands gallery` draws
//! them again.

// Pixels and whole requests.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use analysis::folded;
use measurement::figures::things;
use serde_json::Value;

/// File, chapter, variant and kind of the profile that it shows.
const PICTURES: [(&str, u32, &str, &str); 14] = [
    ("front-cpu", 1, "problem", "cpu"),
    ("front-await", 1, "problem", "await"),
    ("01", 1, "problem", "cpu"),
    ("02", 9, "problem", "await"),
    ("03", 3, "problem", "cpu"),
    ("04", 1, "solution", "await"),
    ("05", 5, "problem", "cpu"),
    ("06", 2, "problem", "await"),
    ("07", 4, "problem", "cpu"),
    ("08", 6, "problem", "cpu"),
    ("09", 5, "solution", "await"),
    ("10", 5, "solution", "cpu"),
    ("11", 7, "problem", "cpu"),
    ("12", 8, "problem", "await"),
];

/// Crates whose frames say nothing about a service.
const PLUMBING: [&str; 24] = [
    "alloc",
    "await_profile",
    "axum",
    "axum_core",
    "bytes",
    "core",
    "futures_core",
    "futures_util",
    "hashbrown",
    "http",
    "http_body_util",
    "httparse",
    "hyper",
    "hyper_util",
    "mio",
    "pin_project_lite",
    "scoped_tls",
    "socket2",
    "std",
    "tokio",
    "tower",
    "tower_http",
    "warp",
    "__rustc",
];

/// Frames of the standard library that a reader knows by another name.
const KNOWN: [(&str, &str); 5] = [
    ("ConvertVec>::to_vec", "String::clone"),
    ("<impl str>::parse", "str::parse"),
    ("<impl str>::starts_with", "str::starts_with"),
    ("drop_in_place<alloc::string::String>", "drop of a String"),
    ("Iterator::any", "Iterator::any"),
];

#[test]
fn gallery_shows_what_was_recorded() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../flamegraphs");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut stale = Vec::new();
    for (file, chapter, variant, kind) in PICTURES {
        let (drawn, told) = draw(&captures, chapter, variant, kind);
        for (ending, text) in [("svg", drawn), ("md", told)] {
            let path = captures.join("gallery").join(format!("{file}.{ending}"));
            if update {
                fs::write(path, text).unwrap();
            } else if fs::read_to_string(&path).ok() != Some(text) {
                stale.push(format!("{file}.{ending}"));
            }
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?}: not what is recorded; see the top of this file"
    );
}

/// The picture, and its boxes as a list, for who cannot see it or reads it on a phone.
fn draw(captures: &Path, chapter: u32, variant: &str, kind: &str) -> (String, String) {
    let folder = captures.join(format!("chapter{chapter}"));
    let stacks = folder.join(format!("{variant}.{kind}.folded"));
    let stacks = fs::read_to_string(stacks).unwrap();
    let record = fs::read_to_string(folder.join("capture.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let profiles = record["profiles"].as_array().unwrap();
    let profile = profiles
        .iter()
        .find(|profile| profile["variant"] == variant && profile["kind"] == kind)
        .unwrap();
    let samples = profile["samples"].as_u64().unwrap();
    let mut root = Node::default();
    for stack in folded::stacks(&stacks) {
        let (frames, count) = stack.unwrap();
        let frames: Vec<&str> = frames.split(';').collect();
        let shown = if kind == "cpu" {
            running(&frames)
        } else {
            waiting(&frames)
        };
        root.add(&shown, count);
    }
    let title = if kind == "cpu" {
        let capacity = profile["capacity"].as_u64().unwrap();
        let busy = share(samples.min(capacity), capacity);
        root.add(&["idle".to_owned()], capacity.saturating_sub(samples));
        let samples = things(samples, "sample");
        format!("CPU profile: {samples}, {busy} busy")
    } else {
        // Microseconds that requests spent, by the microseconds that passed.
        let in_flight = samples as f64 / (profile["seconds"].as_f64().unwrap() * 1e6);
        let in_flight = in_flight.round() as u64;
        format!("Await profile: {in_flight} requests in flight")
    };
    let mut told = String::new();
    root.tell(&mut told, root.weight, 0);
    (svg(&title, &root, kind == "cpu"), told)
}

/// The frames of a CPU's stack that are about the service.
fn running(frames: &[&str]) -> Vec<String> {
    let has = |part: &str| frames.iter().any(|frame| frame.contains(part));
    let thread = if has("__libc_start_main") {
        "main thread"
    } else if has("BlockingTask") && !has("worker::run") {
        "blocking thread"
    } else {
        "worker thread"
    };
    let mut shown = vec![thread.to_owned()];
    if has("hyper::") {
        shown.push("tokio, hyper".to_owned());
    } else if has("tokio::") {
        shown.push("tokio".to_owned());
    }
    let is_start = |frame: &&str| frame.contains("::answer::{{closure}}");
    let is_task = |frame: &&str| frame.contains("BlockingTask");
    let start = frames.iter().rposition(is_start);
    let start = start.or_else(|| frames.iter().rposition(is_task));
    for frame in &frames[start.map_or(frames.len(), |at| at + 1)..] {
        let known = KNOWN.iter().find(|(part, _)| frame.contains(part));
        let name = match (crate_of(frame), known) {
            (_, Some((_, name))) => Some((*name).to_owned()),
            (Some(of), None) if is_own(of) => Some(own(frame)),
            (Some(of), None) if !PLUMBING.contains(&of) => Some(of.to_owned()),
            _ => None,
        };
        shown.extend(name.filter(|name| shown.last() != Some(name)));
    }
    let leaf = frames.last().copied().unwrap_or_default();
    if crate_of(leaf).is_none() && !leaf.starts_with('<') {
        let leaf = leaf.trim_start_matches("__GI_").trim_start_matches('_');
        let leaf = leaf.trim_start_matches("libc_").trim_start_matches("int_");
        let leaf = leaf.split("_avx").next().unwrap_or(leaf);
        shown.push(leaf.split("_evex").next().unwrap_or(leaf).to_owned());
    }
    shown
}

/// The chain of awaits, with short names.
fn waiting(frames: &[&str]) -> Vec<String> {
    let short = |frame: &&str| {
        let (name, place) = frame.split_once(" (src").unwrap_or((frame, ""));
        let line = place.rsplit_once(':').map(|(_, line)| line);
        let name = match crate_of(name) {
            Some(of) if is_own(of) => own(name),
            Some(of) => {
                let parts: Vec<&str> = name.split("::").collect();
                match parts.as_slice() {
                    [.., kind, method] if parts.len() > 3 => format!("{of}: {kind}::{method}"),
                    _ => name.to_owned(),
                }
            }
            None => name.to_owned(),
        };
        line.map_or(name.clone(), |line| {
            format!("{name}, line {}", line.trim_end_matches(')'))
        })
    };
    frames.iter().map(short).collect()
}

fn crate_of(frame: &str) -> Option<&str> {
    let frame = frame.trim_start_matches(['<', '&', '*', '(']);
    let frame = frame.strip_prefix("dyn ").unwrap_or(frame);
    let (name, _) = frame.split_once("::")?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

fn is_own(name: &str) -> bool {
    name == "lab" || name.starts_with("chapter")
}

/// `chapter1::problem::read::{{closure}}` as `app::read`.
fn own(frame: &str) -> String {
    let frame = frame.trim_start_matches('<');
    let frame = frame.split(" as ").next().unwrap_or(frame);
    let parts: Vec<&str> = frame
        .split("::")
        .filter(|part| !part.starts_with('{') && !part.contains('<'))
        .collect();
    let is_type = |part: &&str| part.starts_with(char::is_uppercase);
    let kept = parts.iter().position(is_type).unwrap_or(parts.len() - 1);
    format!("app::{}", parts[kept..].join("::"))
}

/// A box of the picture: what it weighs, and what is above it.
#[derive(Default)]
struct Node {
    weight: u64,
    above: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, frames: &[String], weight: u64) {
        self.weight += weight;
        if let Some((first, rest)) = frames.split_first() {
            let above = self.above.entry(first.clone()).or_default();
            above.add(rest, weight);
        }
    }

    fn shown(&self, whole: u64, depth: usize) -> impl Iterator<Item = (&String, &Self)> {
        let above = self.above.iter();
        above.filter(move |(_, node)| is_wide(node, whole, depth))
    }

    fn height(&self, whole: u64, depth: usize) -> usize {
        let above = self.shown(whole, depth);
        let heights = above.map(|(_, node)| node.height(whole, depth + 1));
        1 + heights.max().unwrap_or(0)
    }

    fn tell(&self, text: &mut String, whole: u64, depth: usize) {
        for (name, node) in self.shown(whole, depth) {
            // Writing to a String cannot fail.
            let indent = "  ".repeat(depth);
            let _ = writeln!(text, "{indent}- `{name}`: {}", share(node.weight, whole));
            node.tell(text, whole, depth + 1);
        }
    }
}

/// Widths and heights in pixels; narrow, because the text has to be read on a phone.
const WIDTH: f64 = 480.0;
const ROW: f64 = 22.0;
const TITLE: f64 = 28.0;

fn svg(title: &str, root: &Node, is_cpu: bool) -> String {
    // At least three rows, so that an empty picture looks empty.
    let rows = (root.height(root.weight, 0) - 1).max(3);
    let height = TITLE + ROW * rows as f64 + 6.0;
    let mut boxes = Boxes {
        text: String::new(),
        whole: root.weight,
        scale: (WIDTH - 8.0) / root.weight.max(1) as f64,
        is_cpu,
    };
    boxes.draw_above(root, 4.0, height - ROW - 4.0, 0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"system-ui,sans-serif\" \
         font-size=\"13\"><title>{title}</title>\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"5\" y=\"18\" font-weight=\"600\">{title}</text>{}</svg>\n",
        boxes.text
    )
}

struct Boxes {
    text: String,
    whole: u64,
    scale: f64,
    is_cpu: bool,
}

impl Boxes {
    fn draw_above(&mut self, node: &Node, x: f64, y: f64, depth: usize) {
        let mut x = x;
        for (name, above) in &node.above {
            if is_wide(above, self.whole, depth) {
                self.draw(name, above, x, y);
                self.draw_above(above, x, y - ROW, depth + 1);
            }
            x += above.weight as f64 * self.scale;
        }
    }

    fn draw(&mut self, name: &str, node: &Node, x: f64, y: f64) {
        let width = node.weight as f64 * self.scale;
        // Writing to a String cannot fail.
        let _ = write!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>",
            (width - 1.0).max(0.8),
            ROW - 1.0,
            colour(name, self.is_cpu)
        );
        // Some 7 pixels a character.
        let room = ((width - 8.0) / 7.0).max(0.0) as usize;
        let with_share = format!("{name}  {}", share(node.weight, self.whole));
        let label = if with_share.chars().count() <= room {
            with_share
        } else if name.chars().count() <= room {
            name.to_owned()
        } else if room > 4 {
            format!("{}…", name.chars().take(room - 1).collect::<String>())
        } else {
            return;
        };
        let label = label.replace('&', "&amp;").replace('<', "&lt;");
        let (x, y) = (x + 4.0, y + 15.0);
        let _ = write!(self.text, "<text x=\"{x:.1}\" y=\"{y}\">{label}</text>");
    }
}

fn colour(name: &str, is_cpu: bool) -> &'static str {
    match (name, is_cpu) {
        ("idle", _) => "#e4e7ea",
        ("main thread" | "worker thread" | "blocking thread" | "tokio" | "tokio, hyper", _) => {
            "#cdd3d8"
        }
        (name, true) if name.starts_with("app::") => "#f2a65a",
        (_, true) => "#f8d9a8",
        (name, false) if name.starts_with("app::") => "#7cc4c8",
        (_, false) => "#c3e6e6",
    }
}

fn share(weight: u64, whole: u64) -> String {
    let share = 100.0 * weight as f64 / whole.max(1) as f64;
    if share > 99.95 {
        "100 %".to_owned()
    } else if !(9.95..=99.0).contains(&share) {
        format!("{share:.1} %")
    } else {
        format!("{share:.0} %")
    }
}

/// What is shown: a hundredth of the whole. At the root all is, as a sliver beside an idle machine
/// is a finding.
fn is_wide(node: &Node, whole: u64, depth: usize) -> bool {
    node.weight > 0 && (depth == 0 || node.weight * 100 >= whole)
}
