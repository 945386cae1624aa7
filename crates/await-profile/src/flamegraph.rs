//! The picture.

use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{Direction, Options, from_lines};

use crate::fold::Kind;
use crate::frames::Frames;
use crate::profile::{Profile, millis};

/// How to draw a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlamegraphOptions {
    /// The headline.
    pub title: String,
    /// The frames to draw.
    pub frames: Frames,
    /// Width in pixels.
    pub width: usize,
}

impl Default for FlamegraphOptions {
    fn default() -> Self {
        FlamegraphOptions {
            title: "What requests wait for".into(),
            frames: Frames::Own,
            width: 1200,
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

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlamegraphError {
    /// No sample fell on a request: nothing was in flight.
    #[error("no request was in flight while the profile was taken")]
    Empty,
    /// Inferno could not draw it.
    #[error("could not draw the flamegraph")]
    Draw(#[from] std::io::Error),
}

impl Profile {
    /// Draws the profile as SVG: the route at the bottom, what is waited for at the
    /// top, and the width of a frame the share of the requests in flight.
    ///
    /// # Errors
    ///
    /// If there is nothing to draw, or inferno cannot draw it.
    pub fn flamegraph(&self, options: &FlamegraphOptions) -> Result<String, FlamegraphError> {
        let weights = self.weights(options.frames);
        let mut palette = PaletteMap::default();
        for entry in weights.stacks().flat_map(|(stack, _)| stack) {
            palette.insert(&entry.label, colour(entry.kind));
        }
        let lines: Vec<String> = weights
            .lines()
            .map(|(stack, micros)| format!("{stack} {micros}"))
            .collect();
        if lines.is_empty() {
            return Err(FlamegraphError::Empty);
        }

        let mut inferno = Options::default();
        inferno.title.clone_from(&options.title);
        inferno.subtitle = Some(self.subtitle());
        inferno.image_width = Some(options.width);
        inferno.direction = Direction::Straight;
        inferno.palette_map = Some(&mut palette);
        "wait:".clone_into(&mut inferno.name_type);
        match self.finished() {
            0 => "request-microseconds".clone_into(&mut inferno.count_name),
            finished => {
                "ms of the mean request".clone_into(&mut inferno.count_name);
                inferno.factor = 1.0 / 1e3 / finished as f64;
            }
        }
        let mut svg = Vec::new();
        from_lines(&mut inferno, lines.iter().map(String::as_str), &mut svg)?;
        Ok(String::from_utf8_lossy(&svg).into_owned())
    }

    /// What one must know to read the picture, in a line.
    fn subtitle(&self) -> String {
        let summary = self.summary();
        let samples = summary.samples;
        let mut parts = vec![
            format!(
                "{} samples in {:.1} s, {:.0} a second of {} budgeted",
                samples.of_requests(),
                summary.seconds,
                summary.true_rate_per_second,
                summary.budget_per_second
            ),
            format!("{:.1} in flight", summary.mean_in_flight),
        ];
        if let Some(latency) = self.mean_latency() {
            parts.push(format!("{:.1} ms a request", millis(latency)));
        }
        parts.push(format!(
            "{} ready, {} running, {} settled unseen",
            samples.ready,
            samples.running,
            samples.woken_first + samples.finished_first
        ));
        if summary.late_requests > 0 {
            parts.push(format!("{} began unseen", summary.late_requests));
        }
        parts.push(
            "not shown: inside spawned tasks and set members without inherit(), blocking calls"
                .into(),
        );
        parts.join(" | ")
    }
}

/// Own code stands out; what is waited for has another hue; the rest is pale.
fn colour(kind: Kind) -> Color {
    let (r, g, b) = match kind {
        Kind::Route => (176, 190, 197),
        Kind::Own => (255, 167, 38),
        Kind::Library => (255, 213, 140),
        Kind::Primitive => (100, 181, 246),
        Kind::Framework => (224, 224, 224),
        Kind::Note => (197, 225, 165),
    };
    Color { r, g, b }
}
