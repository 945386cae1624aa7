//! Flamegraphs from folded stacks: where CPUs spend time, what requests
//! wait for, what is allocated, and the difference between two profiles.
//!
//! The runtime and the framework, which carry every request, are one box. Three call-outs show the reader
//! where to look. A CPU profile with too few samples becomes a strip that says so, not a picture.
//!
//! Equal stacks give equal bytes. Zoom and search are inferno's own and
//! work in a page of their own, in an `<object>`, and in the report.

mod boxes;
mod callouts;
mod plumbing;

use crate::folded::{IDLE, MEANINGFUL, NoCount, total};
use crate::profile::Profile;
use await_profile::drawing::{DARK_INK, DARK_PAPER, Drawing, Theme, legible};
use ecosystem::escaped;
use statistics::figures;
use statistics::profile::ProfileKind;

pub use self::boxes::Boxes;
pub use self::plumbing::shortened;

/// Folded stacks that cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlamegraphError {
    /// A line without a count at its end.
    #[error(transparent)]
    NoCount(#[from] NoCount),
    /// The drawing library refused them.
    #[error("{0}; take the profile again.")]
    Refused(String),
}

/// Text around the frames of a flamegraph, and its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The instrument, which decides the colours.
    pub kind: ProfileKind,
    /// The heading; short, for phones.
    pub title: String,
    /// A line below it; short as well.
    pub subtitle: Option<String>,
    /// Unit of a frame's number, such as `samples`.
    pub unit: String,
    /// The weight of [`IDLE`]; none when 0.
    pub idle: u64,
    /// Length of the profile in seconds.
    pub seconds: f64,
    /// The crate whose frames are pointed at.
    pub own: String,
}

impl Picture {
    /// Returns a name for what the widths of such a picture show, short enough for a phone.
    pub fn what(kind: ProfileKind) -> &'static str {
        match kind {
            ProfileKind::Cpu => "CPU time",
            ProfileKind::Await => "waiting",
            ProfileKind::Heap => "allocation",
        }
    }

    /// Returns the picture of one of a capture's profiles; `own` is the crate that it is about.
    pub fn of(profile: &Profile, own: &str) -> Self {
        let (number, what, unit) = drawn(profile);
        let busy = match busy(profile) {
            Some(share) => format!(", {} busy", figures::percent(share)),
            None => String::new(),
        };
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

    /// Returns the picture of the work that a fix took away. It is drawn from the fixed profile to the one before,
    /// so that frames that are gone have a width, and are red.
    pub fn of_change(before: &Profile, after: &Profile, own: &str) -> Self {
        let (first, ..) = drawn(before);
        let (second, what, _) = drawn(after);
        Self {
            title: format!("red went, blue grew: {}", Self::what(after.kind)),
            subtitle: Some(format!(
                "scenario {}, {first} and then {second} {what}",
                after.scenario
            )),
            ..Self::of(after, own)
        }
    }

    /// Returns the settings of the drawing library.
    fn drawing(&self) -> Drawing {
        Drawing {
            title: self.title.clone(),
            captions: self.subtitle.iter().cloned().collect(),
            unit: self.unit.clone(),
            theme: match self.kind {
                ProfileKind::Cpu => Theme::Cpu,
                ProfileKind::Await => Theme::Wait,
                ProfileKind::Heap => Theme::Heap,
            },
            ..Drawing::default()
        }
    }

    /// Returns whether `samples` are too few to draw.
    fn is_strip(&self, samples: u64) -> bool {
        self.kind == ProfileKind::Cpu && samples < MEANINGFUL
    }
}

/// Returns the share (0 to 1) of the time for which a CPU profile's CPUs ran, if that is known.
pub fn busy(profile: &Profile) -> Option<f64> {
    let capacity = profile
        .capacity
        .filter(|_| profile.kind == ProfileKind::Cpu)?;
    Some((profile.samples as f64 / capacity.max(1) as f64).min(1.0))
}

/// Returns the mean number of requests in flight in an await profile: the microseconds that they spent, divided by
/// the microseconds that passed.
pub fn in_flight(profile: &Profile) -> f64 {
    profile.samples as f64 / (profile.seconds * 1e6)
}

/// Returns the number that a profile counted, the name of what it counted, and the unit of its widths.
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

/// Draws folded stacks, lines of `frame;frame;frame count`. It also draws an empty
/// profile, because an idle machine is a finding.
///
/// # Errors
///
/// Fails if a line has no count, or the drawing library refuses the stacks.
pub fn draw(folded: &str, picture: &Picture) -> Result<String, FlamegraphError> {
    let samples = total(folded)?;
    if picture.is_strip(samples) {
        return Ok(strip(picture, samples));
    }
    let folded = carried(folded, picture)?;
    let all = samples.saturating_add(picture.idle);
    let pointed = callouts::point(&folded, &picture.own, all)?;
    let mut drawing = picture.drawing();
    drawing.legend = pointed.legend;
    drawing
        .draw(&with_idle(&pointed.folded, picture.idle)?)
        .map_err(|error| FlamegraphError::Refused(error.to_string()))
}

/// Draws the difference between two profiles. Widths are those of `after`; red
/// frames grew, blue ones shrank. `before` is scaled to as many samples as
/// `after`; stacks that only `before` has are not in the picture.
///
/// # Errors
///
/// Fails for the same reasons as [`draw`].
pub fn draw_difference(
    before: (&str, u64),
    after: (&str, u64),
    picture: &Picture,
) -> Result<String, FlamegraphError> {
    let samples = (total(before.0)?, total(after.0)?);
    if picture.is_strip(samples.0.min(samples.1)) {
        let said = format!(
            "{} against {}: too few to compare",
            figures::things(samples.1, "sample"),
            figures::count(samples.0 as f64),
        );
        return Ok(strip_of(picture, &said, 0.0));
    }
    let before_all = with_idle(&carried(before.0, picture)?, before.1)?;
    let after_all = with_idle(&carried(after.0, picture)?, after.1)?;
    let drawing = picture.drawing();
    drawing
        .draw_difference(&before_all, &after_all)
        .map_err(|error| FlamegraphError::Refused(error.to_string()))
}

/// Returns the stacks with one box for the frames that carry every request. Await profiles keep all frames: they have
/// few, and requests wait in those of the runtime.
fn carried(folded: &str, picture: &Picture) -> Result<String, FlamegraphError> {
    let folded = legible(folded);
    Ok(match picture.kind {
        ProfileKind::Await => folded,
        ProfileKind::Cpu | ProfileKind::Heap => plumbing::fold(&folded)?,
    })
}

/// Draws a strip in place of a picture: the number of samples, and the time.
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

/// Draws the heading of a picture, a sentence, and a bar of which the share `busy` (0 to 1) is filled.
fn strip_of(picture: &Picture, said: &str, busy: f64) -> String {
    let (title, said) = (escaped(&picture.title), escaped(said));
    let subtitle = escaped(picture.subtitle.as_deref().unwrap_or_default());
    let width = busy * 100.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" height=\"96\" role=\"img\" \
         style=\"color-scheme:light dark\">\
         <title>{title}. {subtitle}. {said}.</title>\
         <style>@media(prefers-color-scheme:dark){{.paper{{fill:{DARK_PAPER}}}text{{fill:{DARK_INK}}}}}</style>\
         <rect class=\"paper\" width=\"100%\" height=\"96\" fill=\"#f4f4d8\"/>\
         <g font-family=\"monospace\" font-size=\"12\" text-anchor=\"middle\" fill=\"#000\">\
         <text x=\"50%\" y=\"24\" font-size=\"17\">{title}</text>\
         <text x=\"50%\" y=\"46\">{subtitle}</text>\
         <text x=\"50%\" y=\"66\">{said}</text></g>\
         <rect y=\"78\" width=\"100%\" height=\"10\" fill=\"#cdcdcd\"/>\
         <rect y=\"78\" width=\"{width:.2}%\" height=\"10\" fill=\"#e25822\"/></svg>\n"
    )
}

/// Returns the stacks with a frame for CPUs that had nothing to do.
fn with_idle(folded: &str, idle: u64) -> Result<String, NoCount> {
    let mut text = folded.trim_end().to_owned();
    if idle > 0 {
        text = format!("{text}\n{IDLE} {idle}");
    }
    total(&text)?;
    Ok(text)
}
