//! Flamegraphs from folded stacks: where CPUs spend time, what requests
//! wait for, what is allocated, and the difference between two of them.
//!
//! What carries every request, the runtime and the framework, is one box, and three call-outs say where
//! to look. Too few samples of CPUs are a strip that says so, and no picture.
//!
//! The same stacks give the same bytes. Zoom and search are inferno's own and
//! work in a page of their own, in an `<object>`, and in the report.

mod boxes;
mod callouts;
mod plumbing;

use std::fmt::Write as _;

use inferno::{
    differential,
    flamegraph::{
        self, Options, Palette,
        color::{BackgroundColor, BasicPalette, Color, PaletteMap},
    },
};

use analysis::folded::{IDLE, MEANINGFUL, NOTHING, NoCount, stacks, total};
use measurement::{
    figures,
    profile::{Profile, ProfileKind},
};

pub(crate) use self::boxes::Boxes;

/// Folded stacks that cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlamegraphError {
    /// A line without a count at its end.
    #[error(transparent)]
    NoCount(#[from] NoCount),
    /// The drawing library refused them.
    #[error("the folded stacks cannot be drawn ({0}); take the profile again.")]
    Refused(String),
}

/// What stands around the frames.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The instrument, which decides the colours.
    pub kind: ProfileKind,
    /// The heading; short, for phones.
    pub title: String,
    /// A line below it; short as well.
    pub subtitle: Option<String>,
    /// What a frame's number counts, such as `samples`.
    pub unit: String,
    /// The weight of [`IDLE`]; none when 0.
    pub idle: u64,
    /// How long it was sampled, in seconds.
    pub seconds: f64,
    /// The crate whose frames are pointed at.
    pub own: String,
}

/// Frames of a stack that are drawn; profilers take 64 to 512 of them. Each takes time for all below it.
const DEEPEST: usize = 1000;

/// More rows than these are drawn lower, so that the picture fits a screen.
const ROWS: usize = 36;

impl Picture {
    /// What the widths of such a picture show, short enough for a phone.
    pub fn what(kind: ProfileKind) -> &'static str {
        match kind {
            ProfileKind::Cpu => "CPU time",
            ProfileKind::Await => "waiting",
            ProfileKind::Heap => "allocation",
        }
    }

    /// How a capture shows one of its profiles; `own` is the crate that it is about.
    pub fn of(profile: &Profile, own: &str) -> Self {
        let (number, what, unit) = drawn(profile);
        let busy = busy(profile).map_or_else(String::new, |share| {
            format!(", {} busy", figures::percent(share))
        });
        Self {
            kind: profile.kind,
            title: format!("{}: {}", profile.variant, Self::what(profile.kind)),
            subtitle: Some(format!(
                "scenario {}, {number} {what}{busy}",
                profile.scenario
            )),
            unit: unit.to_owned(),
            idle: profile.idle(),
            seconds: profile.seconds,
            own: own.to_owned(),
        }
    }

    /// How a capture shows what changed between two of its profiles.
    pub fn of_change(before: &Profile, after: &Profile, own: &str) -> Self {
        let (first, ..) = drawn(before);
        let (second, what, _) = drawn(after);
        Self {
            title: format!("change: {}, red is more", Self::what(after.kind)),
            subtitle: Some(format!(
                "scenario {}, {first} and then {second} {what}",
                after.scenario
            )),
            ..Self::of(after, own)
        }
    }

    /// Whether so many samples are too few to draw.
    fn is_strip(&self, samples: u64) -> bool {
        self.kind == ProfileKind::Cpu && samples < MEANINGFUL
    }
}

/// The share (0 to 1) of the time for which a CPU profile's CPUs ran, where that is known.
pub(crate) fn busy(profile: &Profile) -> Option<f64> {
    let capacity = profile
        .capacity
        .filter(|_| profile.kind == ProfileKind::Cpu)?;
    Some((profile.samples as f64 / capacity.max(1) as f64).min(1.0))
}

/// Requests in flight in an await profile: microseconds that they spent, by the microseconds that passed.
pub(crate) fn in_flight(profile: &Profile) -> f64 {
    profile.samples as f64 / (profile.seconds * 1e6)
}

/// How many of what a profile has, and what the widths count.
fn drawn(profile: &Profile) -> (String, &'static str, &'static str) {
    let samples = profile.samples as f64;
    match profile.kind {
        ProfileKind::Await => (
            figures::count(in_flight(profile).round()),
            "requests in flight",
            "µs of requests",
        ),
        ProfileKind::Cpu if profile.samples == 1 => ("1".to_owned(), "sample", "samples"),
        ProfileKind::Cpu => (figures::count(samples), "samples", "samples"),
        ProfileKind::Heap => (figures::count(samples), "allocations", "allocations"),
    }
}

/// Draws folded stacks, lines of `frame;frame;frame count`. No stacks at all
/// are drawn too: an idle machine is a finding.
///
/// # Errors
///
/// When a line has no count.
pub fn draw(folded: &str, picture: &Picture) -> Result<String, FlamegraphError> {
    let samples = total(folded)?;
    if picture.is_strip(samples) {
        return Ok(strip(picture, samples));
    }
    let folded = carried(&legible(folded), picture)?;
    let all = samples.saturating_add(picture.idle);
    let pointed = callouts::point(&folded, &picture.own, all)?;
    let lines = whole(&pointed.folded, picture.idle)?;
    let mut greys = greys();
    let mut options = options(picture, &lines);
    options.palette_map = Some(&mut greys);
    Ok(with_legend(svg(&mut options, &lines)?, &pointed.legend))
}

/// Draws what changed between two profiles: widths are those of `after`, red
/// frames grew, blue ones shrank. `before` is scaled to as many samples as
/// `after`; stacks that only `before` has are not in the picture.
///
/// # Errors
///
/// As [`draw`].
pub fn draw_difference(
    before: (&str, u64),
    after: (&str, u64),
    picture: &Picture,
) -> Result<String, FlamegraphError> {
    let samples = (total(before.0)?, total(after.0)?);
    if picture.is_strip(samples.0.min(samples.1)) {
        let said = format!(
            "{} before, {} after: too few to compare",
            figures::count(samples.0 as f64),
            figures::things(samples.1, "sample"),
        );
        return Ok(strip_of(picture, &said, 0.0));
    }
    let before = whole(&carried(&legible(before.0), picture)?, before.1)?;
    let after = whole(&carried(&legible(after.0), picture)?, after.1)?;
    let mut lines = Vec::new();
    let normal = differential::Options {
        normalize: true,
        strip_hex: false,
    };
    differential::from_readers(normal, before.as_bytes(), after.as_bytes(), &mut lines)
        .map_err(|error| FlamegraphError::Refused(error.to_string()))?;
    let lines = String::from_utf8_lossy(&lines);
    svg(&mut options(picture, &lines), &lines)
}

/// The stacks with one box for what carries every request. What requests wait for has few frames, and
/// those of the runtime are what they wait in.
fn carried(folded: &str, picture: &Picture) -> Result<String, FlamegraphError> {
    Ok(match picture.kind {
        ProfileKind::Await => folded.to_owned(),
        ProfileKind::Cpu | ProfileKind::Heap => plumbing::fold(folded)?,
    })
}

/// In place of a picture: how few samples there were, and in which time.
fn strip(picture: &Picture, samples: u64) -> String {
    let all = samples.saturating_add(picture.idle).max(1);
    let busy = samples as f64 / all as f64;
    let word = if busy < 0.5 {
        "idle"
    } else {
        "too few to draw"
    };
    let said = format!(
        "{word}: {} in {} s",
        figures::things(samples, "sample"),
        figures::count(picture.seconds),
    );
    strip_of(picture, &said, busy)
}

/// What stands above a picture, a sentence, and a bar of which a share (0 to 1) is filled.
fn strip_of(picture: &Picture, said: &str, busy: f64) -> String {
    let (title, said) = (escaped(&picture.title), escaped(said));
    let subtitle = escaped(picture.subtitle.as_deref().unwrap_or_default());
    let width = busy * 100.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" height=\"96\" role=\"img\">\
         <title>{title}. {subtitle}. {said}.</title>\
         <rect width=\"100%\" height=\"96\" fill=\"#f4f4d8\"/>\
         <g font-family=\"monospace\" font-size=\"12\" text-anchor=\"middle\" fill=\"#000\">\
         <text x=\"50%\" y=\"24\" font-size=\"17\">{title}</text>\
         <text x=\"50%\" y=\"46\">{subtitle}</text>\
         <text x=\"50%\" y=\"66\">{said}</text></g>\
         <rect y=\"78\" width=\"100%\" height=\"10\" fill=\"#cdcdcd\"/>\
         <rect y=\"78\" width=\"{width:.2}%\" height=\"10\" fill=\"#e25822\"/></svg>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Lines below the picture, which becomes so much higher.
fn with_legend(svg: String, legend: &[String]) -> String {
    const LINE: usize = 17;
    let height = svg
        .split_once(" height=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse::<usize>().ok());
    let (Some(height), Some(end)) = (height, svg.rfind("</svg>")) else {
        return svg;
    };
    if legend.is_empty() {
        return svg;
    }
    let mut lines = String::new();
    for (place, line) in (1..).zip(legend) {
        let y = height + place * LINE - 6;
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "<text x=\"10\" y=\"{y}\">{}</text>", escaped(line));
    }
    let higher = height + legend.len() * LINE + 4;
    let (picture, rest) = svg.split_at(end);
    let picture = picture
        .replacen(
            &format!(" height=\"{height}\""),
            &format!(" height=\"{higher}\""),
            2,
        )
        .replacen(&format!("1200 {height}\""), &format!("1200 {higher}\""), 1);
    format!("{picture}{lines}{rest}")
}

/// The stacks with their idle frame, and with something to see in any case.
fn whole(folded: &str, idle: u64) -> Result<String, FlamegraphError> {
    let mut text = String::with_capacity(folded.len() + 32);
    let mut all = idle;
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        all = all.saturating_add(count);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {count}", drawable(frames));
    }
    if idle > 0 {
        let _ = writeln!(text, "{IDLE} {idle}");
    } else if all == 0 {
        let _ = writeln!(text, "{NOTHING} 1");
    }
    total(&text)?;
    Ok(text)
}

/// Stacks without what XML has no characters for, as a browser would refuse the whole picture, and not
/// deeper than [`DEEPEST`].
fn legible(folded: &str) -> String {
    let is_no_xml = |c: char| match c {
        '\t' | '\n' | '\r' => false,
        c => c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}'),
    };
    let lines = folded.split_inclusive('\n').map(|line| {
        // White space of XML's in the place of other, which may stand behind a count.
        let line = line.replace(['\x0b', '\x0c'], " ");
        let line = line.replace(is_no_xml, "\u{fffd}");
        let deepest = line.match_indices(';').nth(DEEPEST - 1);
        match deepest.zip(line.trim_end().rsplit_once(' ')) {
            Some(((end, _), (_, count))) => format!("{};[deeper] {count}\n", &line[..end]),
            None => line,
        }
    });
    lines.collect()
}

/// A stack as inferno takes it for one. It would take a number at the end of the last frame's name for
/// another count, and leave out what has no name or begins with `# `: that gets a character without a
/// width before it.
fn drawable(frames: &str) -> String {
    let frames = frames.trim();
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let drawable = match frames.rsplit_once(' ') {
        _ if frames.is_empty() => "[no name]".to_owned(),
        Some((rest, number)) if is_number(number) => format!("{rest}\u{a0}{number}"),
        _ => frames.to_owned(),
    };
    if drawable.starts_with('#') {
        return format!("\u{2060}{drawable}");
    }
    drawable
}

/// Frames that are no code are grey.
fn greys() -> PaletteMap {
    let grey = Color {
        r: 205,
        g: 205,
        b: 205,
    };
    let mut map = PaletteMap::default();
    for frame in [IDLE, NOTHING] {
        map.insert(frame, grey);
    }
    map
}

fn options(picture: &Picture, lines: &str) -> Options<'static> {
    let mut options = Options::default();
    // Warm colours burn, cold ones wait, green ones hold memory; each graph's
    // title says it in words as well.
    let (palette, background) = match picture.kind {
        ProfileKind::Cpu => (BasicPalette::Hot, BackgroundColor::Yellow),
        ProfileKind::Await => (BasicPalette::Aqua, BackgroundColor::Blue),
        ProfileKind::Heap => (BasicPalette::Mem, BackgroundColor::Green),
    };
    options.colors = Palette::Basic(palette);
    options.bgcolors = Some(background);
    options.deterministic = true;
    options.title.clone_from(&picture.title);
    options.subtitle.clone_from(&picture.subtitle);
    options.count_name.clone_from(&picture.unit);
    // Narrower boxes make towers that nobody can read and that push the others down.
    options.min_width = 0.1;
    let rows = lines.lines().map(|line| line.matches(';').count() + 1);
    if rows.max().unwrap_or(0) > ROWS {
        options.frame_height = 14;
        options.font_size = 11;
    }
    options
}

fn svg(options: &mut Options<'_>, lines: &str) -> Result<String, FlamegraphError> {
    let mut svg = Vec::new();
    let mut sorted: Vec<&str> = lines.lines().collect();
    sorted.sort_unstable();
    flamegraph::from_lines(options, sorted, &mut svg)
        .map_err(|error| FlamegraphError::Refused(error.to_string()))?;
    Ok(forgiving(&String::from_utf8_lossy(&svg)))
}

/// inferno's script keeps zoom and search in the page's address. A frame of a
/// single-file report has no address to change, and the browser's refusal
/// would break off the script. Its search button shows only under a mouse,
/// which a phone does not have. A frame that a busy browser has not laid out
/// yet is 0 px wide, less the margins; widths below 0 and divisions by 0 would
/// be errors in its console until the frame has its size.
fn forgiving(svg: &str) -> String {
    let guarded = svg
        .replace("history.replaceState(", "remember(")
        .replace(
            "= svg.width.baseVal.value - xpad * 2;",
            "= Math.max(1, svg.width.baseVal.value - xpad * 2);",
        )
        .replace(
            "#search { text-anchor:end; opacity:0.1;",
            "#search { text-anchor:end;",
        );
    guarded.replacen(
        "\"use strict\";",
        "\"use strict\";\nfunction remember(a, b, c) { try { history.replaceState(a, b, c); } catch (refused) {} }",
        1,
    )
}
