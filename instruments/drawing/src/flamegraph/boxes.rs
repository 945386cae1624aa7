//! A flamegraph without zoom and search: boxes with their shares in them, small enough for a phone. The
//! same boxes are also a list, for readers who cannot see them.

// Pixels.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::canvas::escaped;

/// Widths and heights in pixels; narrow, because the text has to be read on a phone.
const WIDTH: f64 = 480.0;
const ROW: f64 = 22.0;
const TITLE: f64 = 28.0;

/// Height of a call-out, a line of text above the boxes.
const CALL: f64 = 19.0;
/// Colour of call-outs and the boxes that they point at, dark enough for text on white.
const POINTED: &str = "#b3261e";

/// Box of the picture, with its weight and the boxes above it.
#[derive(Debug, Default)]
pub struct Boxes {
    weight: u64,
    above: BTreeMap<String, Boxes>,
}

impl Boxes {
    /// Adds a stack, the outermost frame first.
    pub fn add(&mut self, frames: &[String], weight: u64) {
        self.weight += weight;
        if let Some((first, rest)) = frames.split_first() {
            let above = self.above.entry(first.clone()).or_default();
            above.add(rest, weight);
        }
    }

    /// Returns the boxes as a Markdown list.
    pub fn list(&self) -> String {
        let mut text = String::new();
        self.visit(self.weight, 0, 0, &mut |place, name, share| {
            let indent = "  ".repeat(place.depth);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{indent}- `{name}`: {share}");
        });
        text
    }

    /// Returns the widest box with a top of its own, its name and its share, except the one called `except`. The top is
    /// what no box lies above.
    pub fn widest_top(&self, except: &str) -> Option<(String, String)> {
        let mut widest: Option<(&str, u64)> = None;
        self.tops(&mut |name, weight| {
            if name != except && widest.is_none_or(|(_, most)| weight > most) {
                widest = Some((name, weight));
            }
        });
        widest.map(|(name, weight)| (name.to_owned(), share(weight, self.weight)))
    }

    /// Calls `see` for every box above which there is none.
    fn tops<'a>(&'a self, see: &mut impl FnMut(&'a str, u64)) {
        for (name, box_) in &self.above {
            if box_.above.is_empty() {
                see(name, box_.weight);
            } else {
                box_.tops(see);
            }
        }
    }

    /// Draws the picture. `colour` gives the colour of a frame. A line leads to the widest box whose name begins with
    /// each text in `pointed`, because the box may be too narrow to be seen.
    pub fn svg(
        &self,
        title: &str,
        colour: impl Fn(&str) -> &'static str,
        pointed: &[&str],
    ) -> String {
        // At least three rows, so that an empty picture looks empty.
        let mut rows = 3;
        self.visit(self.weight, 0, 0, &mut |place, _, _| {
            rows = rows.max(place.depth + 1);
        });
        let height = TITLE + CALL * pointed.len() as f64 + ROW * rows as f64 + 6.0;
        let scale = (WIDTH - 8.0) / self.weight.max(1) as f64;
        let mut boxes = String::new();
        let mut widest = vec![None::<Call>; pointed.len()];
        self.visit(self.weight, 0, 0, &mut |place, name, share| {
            let x = 4.0 + place.from as f64 * scale;
            let y = height - 4.0 - ROW * (place.depth + 1) as f64;
            let width = place.weight as f64 * scale;
            // Writing to a String cannot fail.
            let _ = write!(
                boxes,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>",
                (width - 1.0).max(0.8),
                ROW - 1.0,
                colour(name)
            );
            for (pointed, widest) in pointed.iter().zip(&mut widest) {
                let is_wider = widest.as_ref().is_none_or(|widest| widest.width < width);
                if name.starts_with(pointed) && is_wider {
                    *widest = Some(Call {
                        x,
                        y,
                        width,
                        said: format!("{name}  {share}"),
                    });
                }
            }
            if let Some(label) = label(name, share, width) {
                let (x, y, label) = (x + 4.0, y + 15.0, escaped(&label));
                let _ = write!(boxes, "<text x=\"{x:.1}\" y=\"{y}\">{label}</text>");
            }
        });
        let title = escaped(title);
        let calls = calls(widest.into_iter().flatten().collect());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"system-ui,sans-serif\" \
             font-size=\"13\"><title>{title}</title>\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
             <text x=\"5\" y=\"18\" font-weight=\"600\">{title}</text>{boxes}{calls}</svg>\n"
        )
    }

    /// Calls `see` for every box of at least 1.5 % of the whole, from the bottom up. It visits all boxes at
    /// the bottom, because a sliver beside an idle machine is a finding.
    fn visit(&self, whole: u64, from: u64, depth: usize, see: &mut impl FnMut(Place, &str, &str)) {
        let mut from = from;
        for (name, above) in &self.above {
            let weight = above.weight;
            if weight > 0 && (depth == 0 || weight * 200 >= 3 * whole) {
                let place = Place {
                    from,
                    weight,
                    depth,
                };
                see(place, name, &share(weight, whole));
                above.visit(whole, from, depth + 1, see);
            }
            from += weight;
        }
    }
}

/// Beginning of a box, its weight, and its row.
struct Place {
    from: u64,
    weight: u64,
    depth: usize,
}

/// Box that a call-out points at, and the text of the call-out.
#[derive(Clone)]
struct Call {
    x: f64,
    y: f64,
    width: f64,
    said: String,
}

/// Draws a line of text for each call-out, and a line to its box. The call-outs on the right come first, from the
/// right, with their texts to the left of their lines. In this order no line runs through a text.
fn calls(mut calls: Vec<Call>) -> String {
    let at = |call: &Call| call.x + (call.width / 2.0).min(8.0);
    let is_right = |at: f64| at > WIDTH / 2.0;
    let order = |call: &Call| match at(call) {
        right if is_right(right) => -right,
        left => left,
    };
    calls.sort_by(|a, b| order(a).total_cmp(&order(b)));
    let mut drawn = String::new();
    for (place, call) in calls.iter().enumerate() {
        let (at, y) = (at(call), TITLE + CALL * place as f64);
        let (text, anchor) = if is_right(at) {
            (at - 5.0, "end")
        } else {
            (at + 5.0, "start")
        };
        // Writing to a String cannot fail.
        let _ = write!(
            drawn,
            "<g fill=\"{POINTED}\"><path d=\"M{at:.1} {}V{}\" stroke=\"{POINTED}\"/>\
             <rect x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" rx=\"2\" fill=\"none\" \
             stroke=\"{POINTED}\" stroke-width=\"1.5\"/>\
             <text x=\"{text:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text></g>",
            y + 2.0,
            call.y,
            call.x,
            call.y,
            (call.width - 1.0).max(0.8),
            ROW - 1.0,
            y + 13.0,
            escaped(&call.said),
        );
    }
    drawn
}

/// Returns as much of the name and the share as a box of this width has room for, at 7 pixels a character.
fn label(name: &str, share: &str, width: f64) -> Option<String> {
    let room = ((width - 8.0) / 7.0).max(0.0) as usize;
    let with_share = format!("{name}  {share}");
    if with_share.chars().count() <= room {
        Some(with_share)
    } else if name.chars().count() <= room {
        Some(name.to_owned())
    } else if room > 4 {
        Some(name.chars().take(room - 1).chain(['…']).collect())
    } else {
        None
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
