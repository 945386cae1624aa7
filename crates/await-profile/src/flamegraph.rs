//! The picture.

use std::fmt::Write;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Direction, Options, from_lines};

use crate::error::FlamegraphError;
use crate::frame_kind::FrameKind;
use crate::profile::{Profile, millis};
use crate::stack::Frames;

/// How to draw a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlamegraphOptions {
    /// The headline.
    pub title: String,
    /// The frames to draw.
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
    /// Draws the profile as SVG: the route at the bottom, what is waited for at the
    /// top, and the width of a frame the share of the requests in flight.
    ///
    /// # Errors
    ///
    /// If there is nothing to draw, or inferno cannot draw it.
    pub fn flamegraph(&self, options: &FlamegraphOptions) -> Result<String, FlamegraphError> {
        let weights = self.weights(options.frames);
        let mut palette = PaletteMap::default();
        palette.insert("all", colour(FrameKind::Framework));
        palette.insert("", colour(FrameKind::Framework));
        for frame in weights.rounded().flat_map(|(stack, _)| stack) {
            palette.insert(frame.label(), colour(frame.kind));
        }
        let folded = self.folded(options.frames);
        if folded.is_empty() {
            return Err(FlamegraphError::Empty);
        }

        let mut inferno = Options::default();
        inferno.title.clone_from(&options.title);
        inferno.subtitle = Some(self.captions().join(BREAK));
        inferno.bgcolors = Some(BackgroundColor::Flat(Color {
            r: 252,
            g: 252,
            b: 252,
        }));
        inferno.image_width = Some(1200);
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
        from_lines(&mut inferno, folded.lines(), &mut svg)?;
        Ok(break_caption(&String::from_utf8_lossy(&svg)))
    }

    /// What one must know to read the picture: what was measured, and what of it
    /// the picture does not show.
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
        if let Some(latency) = self.mean_latency() {
            let _ = write!(measured, ", {:.1} ms each", millis(latency));
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

/// Stands for the break between the captions until inferno has drawn them.
const BREAK: &str = " ~~ ";

/// Inferno has one line for a subtitle; there is room for two.
fn break_caption(svg: &str) -> String {
    let whole = || {
        let at = svg.find("<text id=\"subtitle\"")?;
        let open = at + svg[at..].find('>')? + 1;
        let close = open + svg[open..].find("</text>")?;
        let (first, second) = svg[open..close].split_once(BREAK)?;
        let line = |y: u32, text: &str| format!("<tspan x=\"50%\" y=\"{y}\">{text}</tspan>");
        Some(
            [
                &svg[..open],
                &line(41, first),
                &line(55, second),
                &svg[close..],
            ]
            .concat(),
        )
    };
    whole().unwrap_or_else(|| svg.replace(BREAK, " | "))
}

/// Own code stands out; what is waited for has another hue; the rest is pale.
fn colour(kind: FrameKind) -> Color {
    let (r, g, b) = match kind {
        FrameKind::Route => (176, 190, 197),
        FrameKind::Own => (255, 167, 38),
        FrameKind::Library => (255, 213, 140),
        FrameKind::Primitive => (100, 181, 246),
        FrameKind::Framework => (224, 224, 224),
        FrameKind::Remark => (197, 225, 165),
    };
    Color { r, g, b }
}
