//! Flamegraphs from folded stacks: where CPUs spend time, what requests
//! wait for, what is allocated, and the difference between two of them.
//!
//! The same stacks give the same bytes. Zoom and search are inferno's own and
//! work in a page of their own, in an `<object>`, and in the report.

use std::fmt::Write as _;

use inferno::{
    differential,
    flamegraph::{
        self, Options, Palette,
        color::{BackgroundColor, BasicPalette, Color, PaletteMap},
    },
};

use analysis::folded::{IDLE, NOTHING, NoCount, stacks};
use measurement::{
    figures,
    profile::{Profile, ProfileKind},
};

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
}

impl Picture {
    /// What the widths of such a picture show, short enough for a phone.
    pub fn what(kind: ProfileKind) -> &'static str {
        match kind {
            ProfileKind::Cpu => "CPU time",
            ProfileKind::Await => "waiting",
            ProfileKind::Heap => "allocation",
        }
    }

    /// How a capture shows one of its profiles.
    pub fn of(profile: &Profile) -> Self {
        let (subtitle, unit) = match profile.kind {
            ProfileKind::Cpu => {
                let busy = profile.capacity.map_or_else(String::new, |capacity| {
                    let busy = profile.samples as f64 / capacity.max(1) as f64;
                    format!(": {} busy", figures::percent(busy.min(1.0)))
                });
                let samples = figures::things(profile.samples, "sample");
                (format!("{samples}{busy}"), "samples")
            }
            ProfileKind::Await => {
                // Microseconds that requests spent, by the microseconds that passed.
                let in_flight = profile.samples as f64 / (profile.seconds * 1e6);
                let in_flight = figures::count(in_flight.round());
                (
                    format!("{in_flight} requests in flight on average"),
                    "µs of requests",
                )
            }
            ProfileKind::Heap => (
                figures::things(profile.samples, "allocation"),
                "allocations",
            ),
        };
        Self {
            kind: profile.kind,
            title: format!("{}: {}", profile.variant, Self::what(profile.kind)),
            subtitle: Some(subtitle),
            unit: unit.to_owned(),
            idle: profile.idle(),
        }
    }
}

/// Draws folded stacks, lines of `frame;frame;frame count`. No stacks at all
/// are drawn too: an idle machine is a finding.
///
/// # Errors
///
/// When a line has no count.
pub fn draw(folded: &str, picture: &Picture) -> Result<String, FlamegraphError> {
    let lines = whole(folded, picture.idle)?;
    let mut greys = greys();
    let mut options = options(picture);
    options.palette_map = Some(&mut greys);
    svg(&mut options, &lines)
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
    let (before, after) = (whole(before.0, before.1)?, whole(after.0, after.1)?);
    let mut lines = Vec::new();
    let normal = differential::Options {
        normalize: true,
        strip_hex: false,
    };
    differential::from_readers(normal, before.as_bytes(), after.as_bytes(), &mut lines)
        .map_err(|error| FlamegraphError::Refused(error.to_string()))?;
    svg(&mut options(picture), &String::from_utf8_lossy(&lines))
}

/// The stacks with their idle frame, and with something to see in any case.
fn whole(folded: &str, idle: u64) -> Result<String, FlamegraphError> {
    let mut text = String::with_capacity(folded.len() + 32);
    let mut all = idle;
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        all = all.saturating_add(count);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{frames} {count}");
    }
    if idle > 0 {
        let _ = writeln!(text, "{IDLE} {idle}");
    } else if all == 0 {
        let _ = writeln!(text, "{NOTHING} 1");
    }
    Ok(text)
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

fn options(picture: &Picture) -> Options<'static> {
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
    options.min_width = 0.05;
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
