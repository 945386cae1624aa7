//! Boxes of the still pictures: what a recorded stack is called there, with the names that a reader knows.

use std::collections::BTreeMap;

use drawing::flamegraph::{Boxes, busy, in_flight};
use drawing::folded;
use drawing::profile::Profile;
use ecosystem::{crate_of, place_of, wait_in};
use statistics::figures;
use statistics::profile::ProfileKind;

/// Frames of the standard library that a reader knows by another name.
const KNOWN: [(&str, &str); 5] = [
    ("ConvertVec>::to_vec", "String::clone"),
    ("<impl str>::parse", "str::parse"),
    ("<impl str>::starts_with", "str::starts_with"),
    ("drop_in_place<alloc::string::String>", "drop of a String"),
    ("Iterator::any", "Iterator::any"),
];

/// Returns the widest box at the top of a profile's picture: its name and its share of the whole width, as the
/// picture has them.
///
/// # Errors
///
/// Fails if a line of the stacks has no count.
pub(crate) fn widest_top(
    stacks: &str,
    profile: &Profile,
) -> Result<Option<(String, String)>, folded::NoCount> {
    let (_, boxes) = boxes(stacks, profile, &BTreeMap::new())?;
    Ok(boxes.widest_top("idle"))
}

/// Returns the title of a profile's picture, and its boxes. `renamed` is that of [`draw`](super::gallery::draw).
///
/// # Errors
///
/// Fails if a line of the stacks has no count.
pub(crate) fn boxes(
    stacks: &str,
    profile: &Profile,
    renamed: &BTreeMap<String, String>,
) -> Result<(String, Boxes), folded::NoCount> {
    let is_cpu = profile.kind == ProfileKind::Cpu;
    let shown = if is_cpu { running } else { waiting };
    let mut boxes = Boxes::default();
    for stack in folded::stacks(stacks) {
        let (frames, count) = stack?;
        let mut shown = shown(&frames.split(';').collect::<Vec<_>>());
        rename(&mut shown, renamed);
        boxes.add(&shown, count);
    }
    let title = if is_cpu {
        boxes.add(&["idle".to_owned()], profile.idle());
        let samples = figures::things(profile.samples, "sample");
        let busy = figures::percent(busy(profile).unwrap_or(1.0));
        format!("CPU profile: {samples}, {busy} busy")
    } else {
        let requests = match format!("{:.0}", in_flight(profile)).as_str() {
            "1" => "1 request".to_owned(),
            many => format!("{many} requests"),
        };
        format!("Await profile: {requests} in flight")
    };
    Ok((title, boxes))
}

fn rename(frames: &mut Vec<String>, renamed: &BTreeMap<String, String>) {
    if renamed.is_empty() {
        return;
    }
    for frame in frames.iter_mut() {
        for (before, after) in renamed {
            let Some(rest) = frame.strip_prefix(before.as_str()) else {
                continue;
            };
            // `app::read` matches in `app::read, line 31`, but not in `app::reader`.
            if !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
                *frame = format!("{after}{rest}");
                break;
            }
        }
    }
    frames.dedup();
}

/// Picks the frames of a CPU's stack that are about the service.
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
    let mut start = None;
    for name in ["::answer::{{closure}}", "BlockingTask"] {
        start = start.or(frames.iter().rposition(|frame| frame.contains(name)));
    }
    let inside = match start {
        Some(at) => &frames[at + 1..],
        None => &[],
    };
    for frame in inside {
        let known = KNOWN.iter().find(|(part, _)| frame.contains(part));
        let krate = crate_of(frame);
        let name = match known {
            Some((_, name)) => Some((*name).to_owned()),
            None if is_own(krate) => Some(own(frame)),
            None if is_crate(krate, frame) && place_of(krate).is_none() => Some(krate.to_owned()),
            None => None,
        };
        shown.extend(name.filter(|name| shown.last() != Some(name)));
    }
    let leaf = frames.last().copied().unwrap_or_default();
    if !is_crate(crate_of(leaf), leaf) && !leaf.starts_with('<') {
        let leaf = leaf.trim_start_matches("__GI_").trim_start_matches('_');
        let leaf = leaf.trim_start_matches("libc_").trim_start_matches("int_");
        let leaf = leaf.split("_avx").next().unwrap_or(leaf);
        shown.push(leaf.split("_evex").next().unwrap_or(leaf).to_owned());
    }
    shown
}

/// Shortens the names in a chain of awaits. The name of a well-known wait stands in place of the frames inside of it.
fn waiting(frames: &[&str]) -> Vec<String> {
    let inside = match frames.iter().rposition(|frame| is_own(crate_of(frame))) {
        Some(own) => own + 1,
        None => 0,
    };
    let wait = wait_in(&frames[inside..]).filter(|(row, _)| row.is_frame());
    if let Some((row, at)) = wait {
        let mut shown = shortened(&frames[..=inside + at]);
        shown.push(row.wait.what.to_owned());
        return shown;
    }
    shortened(frames)
}

fn shortened(frames: &[&str]) -> Vec<String> {
    let mut shown = Vec::new();
    for frame in frames {
        let (name, place) = frame.split_once(" (src").unwrap_or((frame, ""));
        let krate = crate_of(name);
        let parts: Vec<&str> = name.split("::").collect();
        let name = match parts.as_slice() {
            _ if is_own(krate) => own(name),
            [.., kind, method] if parts.len() > 3 => format!("{krate}: {kind}::{method}"),
            _ => name.to_owned(),
        };
        shown.push(match place.rsplit_once(':') {
            Some((_, line)) => format!("{name}, line {}", line.trim_end_matches(')')),
            None => name,
        });
    }
    shown
}

/// Returns whether a frame has a path, and `krate` is the crate in it.
fn is_crate(krate: &str, frame: &str) -> bool {
    frame.contains(&format!("{krate}::"))
}

fn is_own(krate: &str) -> bool {
    krate == "lab" || krate.starts_with("chapter")
}

/// Shortens `chapter1::problem::read::{{closure}}` to `app::read`.
fn own(frame: &str) -> String {
    let frame = frame.trim_start_matches('<');
    let frame = frame.split(" as ").next().unwrap_or(frame);
    let mut parts: Vec<&str> = frame.split("::").collect();
    parts.retain(|part| !part.starts_with('{') && !part.contains('<'));
    let mut kept = parts.len() - 1;
    for (at, part) in parts.iter().enumerate() {
        if part.starts_with(char::is_uppercase) {
            kept = at;
            break;
        }
    }
    format!("app::{}", parts[kept..].join("::"))
}
