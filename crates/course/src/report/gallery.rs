//! Still pictures for the front page, the gallery and the chapters, drawn from recorded stacks. They leave
//! out the names that give a chapter away.

use ecosystem::{crate_of, place_of};
use engine::folded;
use engine::{
    figures,
    profile::{Profile, ProfileKind},
};

use crate::report::capture::{Capture, CaptureError, stacks_error};
use drawing::flamegraph::{Boxes, busy, in_flight};

/// Frames of the standard library that a reader knows by another name.
const KNOWN: [(&str, &str); 5] = [
    ("ConvertVec>::to_vec", "String::clone"),
    ("<impl str>::parse", "str::parse"),
    ("<impl str>::starts_with", "str::starts_with"),
    ("drop_in_place<alloc::string::String>", "drop of a String"),
    ("Iterator::any", "Iterator::any"),
];

/// Draws a profile of a capture as a picture, with its boxes as a Markdown list; `None` if it was not taken.
/// A line leads to each box whose name begins with an entry of `pointed`. A name that begins with the first
/// of a pair in `renamed` begins with the second instead. Adjacent frames that then have the same name become
/// one box.
///
/// # Errors
///
/// Fails if a line of its stacks has no count.
pub fn draw(
    capture: &Capture,
    variant: &str,
    kind: ProfileKind,
    pointed: &[&str],
    renamed: &[(&str, &str)],
) -> Result<Option<(String, String)>, CaptureError> {
    let Some(profile) = capture.profile(variant, kind) else {
        return Ok(None);
    };
    let (title, boxes) = boxes(capture.stacks(profile), profile, renamed)
        .map_err(|error| stacks_error(profile, error.into()))?;
    let svg = boxes.svg(&title, |frame| colour(frame, kind), pointed);
    Ok(Some((svg, boxes.list())))
}

fn boxes(
    stacks: &str,
    profile: &Profile,
    renamed: &[(&str, &str)],
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

fn rename(frames: &mut Vec<String>, renamed: &[(&str, &str)]) {
    if renamed.is_empty() {
        return;
    }
    for frame in frames.iter_mut() {
        let new = renamed.iter().find_map(|(before, after)| {
            let rest = frame.strip_prefix(before)?;
            // `app::read` matches in `app::read, line 31`, but not in `app::reader`.
            let is_whole =
                !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
            is_whole.then(|| format!("{after}{rest}"))
        });
        if let Some(new) = new {
            *frame = new;
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
    let is_start = |frame: &&str| frame.contains("::answer::{{closure}}");
    let is_task = |frame: &&str| frame.contains("BlockingTask");
    let start = frames.iter().rposition(is_start);
    let start = start.or_else(|| frames.iter().rposition(is_task));
    for frame in &frames[start.map_or(frames.len(), |at| at + 1)..] {
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

/// Shortens the names in a chain of awaits.
fn waiting(frames: &[&str]) -> Vec<String> {
    let short = |frame: &&str| {
        let (name, place) = frame.split_once(" (src").unwrap_or((frame, ""));
        let krate = crate_of(name);
        let parts: Vec<&str> = name.split("::").collect();
        let name = match parts.as_slice() {
            _ if is_own(krate) => own(name),
            [.., kind, method] if parts.len() > 3 => format!("{krate}: {kind}::{method}"),
            _ => name.to_owned(),
        };
        match place.rsplit_once(':') {
            Some((_, line)) => format!("{name}, line {}", line.trim_end_matches(')')),
            None => name,
        }
    };
    frames.iter().map(short).collect()
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
    let parts: Vec<&str> = frame
        .split("::")
        .filter(|part| !part.starts_with('{') && !part.contains('<'))
        .collect();
    let is_type = |part: &&str| part.starts_with(char::is_uppercase);
    let kept = parts.iter().position(is_type).unwrap_or(parts.len() - 1);
    format!("app::{}", parts[kept..].join("::"))
}

/// Chooses a box's colour: dark for the service's own code, grey for the runtime.
fn colour(name: &str, kind: ProfileKind) -> &'static str {
    let is_runtime = name.ends_with(" thread") || name.starts_with("tokio") && !name.contains(':');
    match (name.starts_with("app::"), kind) {
        _ if name == "idle" => "#e4e7ea",
        _ if is_runtime => "#cdd3d8",
        (true, ProfileKind::Await) => "#7cc4c8",
        (false, ProfileKind::Await) => "#c3e6e6",
        (true, _) => "#f2a65a",
        (false, _) => "#f8d9a8",
    }
}
