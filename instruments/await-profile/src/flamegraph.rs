//! Flamegraphs of await profiles.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::drawing::{Drawing, Theme};
use crate::error::FlamegraphError;
use crate::fold::Weights;
use crate::frame_kind::FrameKind;
use crate::profile::{Profile, readable};
use crate::stack::Frames;

/// Options for drawing a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlamegraphOptions {
    /// Headline of the picture.
    pub title: String,
    /// Frames to draw.
    pub frames: Frames,
}

impl Default for FlamegraphOptions {
    fn default() -> Self {
        FlamegraphOptions {
            title: "What requests wait for".into(),
            frames: Frames::Own,
        }
    }
}

impl FlamegraphOptions {
    /// Sets the headline.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the frames to draw.
    #[must_use]
    pub fn frames(mut self, frames: Frames) -> Self {
        self.frames = frames;
        self
    }
}

impl Profile {
    /// Draws the profile as SVG. The route is at the bottom, and the primitive that is waited for at
    /// the top. The width of a frame is its share of the requests in flight.
    ///
    /// # Errors
    ///
    /// Returns an error if there is nothing to draw, or if inferno cannot draw it.
    pub fn flamegraph(&self, options: &FlamegraphOptions) -> Result<String, FlamegraphError> {
        let weights = self.weights(options.frames);
        let folded = self.folded(options.frames);
        if folded.is_empty() {
            return Err(FlamegraphError::Empty);
        }
        let mut colours = BTreeMap::new();
        for (stack, _) in weights.rounded() {
            for frame in stack {
                colours.insert(frame.label(), colour(frame.kind));
            }
        }
        colours.insert("all".to_owned(), colour(FrameKind::Framework));
        let mut legend = Vec::new();
        for remark in self.remarks() {
            legend.extend(wrapped(&remark.says));
        }
        let drawing = Drawing {
            title: options.title.clone(),
            captions: self.captions().to_vec(),
            // For inferno's script, which has no room for more. The text of each frame is written below.
            unit: "request-microseconds".to_owned(),
            theme: Theme::Plain,
            colours,
            legend,
        };
        Ok(self.describe_frames(&drawing.draw(&folded)?, &weights))
    }

    /// Writes into each frame's text what its width means. Inferno knows one unit for all frames, and
    /// takes per cent of rounded numbers.
    fn describe_frames(&self, svg: &str, weights: &Weights) -> String {
        // End of each route, in the order in which the routes lie beside each other.
        let mut ends: Vec<(u64, &str)> = Vec::new();
        let mut total = 0;
        for (stack, micros) in weights.rounded() {
            total += micros;
            let route = stack.first().map_or("", |route| &route.path);
            match ends.last_mut() {
                Some((end, last)) if *last == route => *end = total,
                _ => ends.push((total, route)),
            }
        }
        let mut described = String::with_capacity(svg.len());
        let mut rest = svg;
        while let Some(at) = rest.find("</title><rect ") {
            let (before, after) = rest.split_at(at);
            let text = before.strip_suffix(')').and_then(|text| text.rfind(" ("));
            let width = number_of(after, " fg:w=\"");
            let from = number_of(after, " fg:x=\"");
            match (text, width, from) {
                (Some(text), Some(width), Some(from)) => {
                    let share = width as f64 / total as f64;
                    // A frame of all routes begins at the first route and ends after it, so it has no time.
                    let route = match ends.iter().find(|(end, _)| from < *end) {
                        Some((end, route)) if from + width <= *end => Some(*route),
                        _ => None,
                    };
                    described.push_str(&before[..text]);
                    let _ = write!(described, " ({})", self.width_in_words(share, route));
                }
                _ => described.push_str(before),
            }
            let (tag, others) = after.split_at("</title>".len());
            described.push_str(tag);
            rest = others;
        }
        described + rest
    }

    /// Returns in words what a frame's width is: requests in flight, and the time of a request if it is of one route.
    fn width_in_words(&self, share: f64, route: Option<&str>) -> String {
        let in_flight = share * self.mean_in_flight();
        let mut text = format!(
            "{:.2}% of the requests in flight: {in_flight:.1}",
            share * 100.0
        );
        if let Some(route) = route
            && let Some(spent) = self.latency(in_flight, self.ended_of(route))
        {
            // Writing to a string cannot fail.
            let _ = write!(text, ", {} a request", readable(spent));
        }
        text
    }

    /// Returns the captions that a reader needs: what was measured, and what the picture does not
    /// show.
    fn captions(&self) -> [String; 2] {
        let summary = self.summary();
        let samples = summary.samples;
        let mut measured = format!(
            "{} samples in {:.1} s ({:.0} a second of {} budgeted), {:.1} requests in flight",
            samples.of_requests(),
            summary.seconds,
            summary.true_rate_per_second,
            summary.budget_per_second,
            summary.mean_in_flight
        );
        // The routes with most requests in flight, as far as there is room.
        let latencies = summary.routes.iter().filter_map(|route| {
            let latency = Duration::try_from_secs_f64(route.latency_ms? / 1e3).ok()?;
            Some((route.route.as_str(), readable(latency)))
        });
        let latencies: Vec<_> = latencies.take(MAX_TIMES).collect();
        match latencies.as_slice() {
            [] => {}
            [(_, latency)] if summary.routes.len() == 1 => {
                let _ = write!(measured, ", {latency} a request, by Little's law");
            }
            several => {
                measured.push_str("; by Little's law a request takes ");
                let times = several
                    .iter()
                    .map(|(route, time)| format!("{time} ({route})"));
                measured.push_str(&times.collect::<Vec<_>>().join(", "));
            }
        }
        let mut apart = format!(
            "{} samples ready, {} running, {} woken or gone before they were seen",
            samples.ready,
            samples.running,
            samples.woken_first + samples.finished_first
        );
        if summary.late_requests > 0 {
            let _ = write!(
                apart,
                ", {} requests had begun unseen",
                summary.late_requests
            );
        }
        apart.push_str(" | not shown: inside tasks and sets without inherit(), blocking calls");
        [measured, apart]
    }
}

/// Breaks a text into lines that fit below the picture.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < LINE => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Longest line below the picture, in bytes.
const LINE: usize = 170;

/// Returns the number in an attribute; `attribute` is its beginning, as in ` fg:w="`.
fn number_of(tag: &str, attribute: &str) -> Option<u64> {
    let value = &tag[tag.find(attribute)? + attribute.len()..];
    value[..value.find('"')?].parse().ok()
}

/// Most routes whose time the caption gives.
const MAX_TIMES: usize = 3;

/// Returns the color of a kind: own code stands out, primitives have another hue, and the rest is pale.
fn colour(kind: FrameKind) -> [u8; 3] {
    match kind {
        FrameKind::Route => [176, 190, 197],
        FrameKind::Own => [255, 167, 38],
        FrameKind::Library => [255, 213, 140],
        FrameKind::Primitive => [100, 181, 246],
        FrameKind::Framework => [224, 224, 224],
        FrameKind::Remark => [197, 225, 165],
    }
}
