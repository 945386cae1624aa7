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
    /// Paragraphs below the picture, such as findings of a diagnosis.
    pub legend: Vec<String>,
}

impl Default for FlamegraphOptions {
    fn default() -> Self {
        FlamegraphOptions {
            title: "What requests wait for".into(),
            frames: Frames::Own,
            legend: Vec::new(),
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

    /// Sets the paragraphs below the picture.
    #[must_use]
    pub fn legend(mut self, legend: Vec<String>) -> Self {
        self.legend = legend;
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
        // The box of all requests, which has no name.
        colours.insert(String::new(), colour(FrameKind::Framework));
        let drawing = Drawing {
            title: options.title.clone(),
            captions: self.captions(),
            // For inferno's script, which has no room for more. The text of each frame is written below.
            unit: "request-microseconds".to_owned(),
            theme: Theme::Plain,
            colours,
            legend: options.legend.clone(),
            ..Drawing::default()
        };
        let ends = ends_of_routes(&weights);
        drawing.draw_with(&folded, |frame| {
            let share = frame.weight as f64 / frame.whole as f64;
            // A frame of all routes begins at the first route and ends after it, so it has no time.
            let route = match ends.iter().find(|(end, _)| frame.from < *end) {
                Some((end, route)) if frame.from + frame.weight <= *end => Some(*route),
                _ => None,
            };
            let width = self.width_in_words(share, route);
            Some(format!("{} ({width})", frame.name))
        })
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
    fn captions(&self) -> Vec<String> {
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
            Some((route.name.as_str(), readable(latency)))
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
        let hidden = "not shown: inside tasks and sets without inherit(), blocking calls";
        vec![measured, apart, hidden.to_owned()]
    }
}

/// Returns the end of each route, in the order in which the routes lie side by side.
fn ends_of_routes(weights: &Weights) -> Vec<(u64, &str)> {
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
    ends
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
