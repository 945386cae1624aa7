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

/// Size of the letters.
const LETTERS: f64 = 13.0;
/// Space between an edge and the text beside it.
const GAP: f64 = 4.0;
/// Fewest letters of a name that are shown before the dots.
const FEWEST_LETTERS: usize = 3;

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
        let (mut widest, mut most) = (None, 0);
        self.tops(&mut |name, weight| {
            if name != except && (widest.is_none() || weight > most) {
                (widest, most) = (Some(name), weight);
            }
        });
        Some((widest?.to_owned(), share(most, self.weight)))
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
                let is_wider = match widest {
                    Some(widest) => widest.width < width,
                    None => true,
                };
                if name.starts_with(pointed) && is_wider {
                    *widest = Some(Call {
                        x,
                        y,
                        width,
                        name: name.to_owned(),
                        share: share.to_owned(),
                    });
                }
            }
            if let Some(label) = label(name, share, width - 2.0 * GAP) {
                let (x, y, label) = (x + GAP, y + 15.0, escaped(&label));
                let _ = write!(boxes, "<text x=\"{x:.1}\" y=\"{y}\">{label}</text>");
            }
        });
        let title = escaped(title);
        let calls = calls(widest.into_iter().flatten().collect());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"system-ui,sans-serif\" \
             font-size=\"{LETTERS}\"><title>{title}</title>\
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

/// Box that a call-out points at, and what the call-out says of it.
#[derive(Clone)]
struct Call {
    x: f64,
    y: f64,
    width: f64,
    name: String,
    share: String,
}

impl Call {
    /// Returns the place of its line, in px from the left.
    fn at(&self) -> f64 {
        self.x + (self.width / 2.0).min(8.0)
    }

    /// Returns the key by which call-outs come in their order.
    fn order(&self) -> f64 {
        let at = self.at();
        if is_right(at) { -at } else { at }
    }
}

fn is_right(at: f64) -> bool {
    at > WIDTH / 2.0
}

/// Draws a line of text for each call-out, and a line to its box. The call-outs on the right come first, from the
/// right, with their texts to the left of their lines. In this order no line runs through a text. A text that has no
/// room beside its line stands above it.
fn calls(mut calls: Vec<Call>) -> String {
    calls.sort_by(|a, b| a.order().total_cmp(&b.order()));
    let mut drawn = String::new();
    for (place, call) in calls.iter().enumerate() {
        let (at, y) = (call.at(), TITLE + CALL * place as f64);
        let said = with_share(&call.name, &call.share, WIDTH - 2.0 * GAP);
        let width = width_of(&said);
        let beside = if is_right(at) {
            at - 5.0 - width
        } else {
            at + 5.0
        };
        let text = beside.min(WIDTH - GAP - width).max(GAP);
        let is_beside = text + width < at || text > at;
        let begin = y + if is_beside { 2.0 } else { CALL - 2.0 };
        // Writing to a String cannot fail.
        let _ = write!(
            drawn,
            "<g fill=\"{POINTED}\"><path d=\"M{at:.1} {begin}V{}\" stroke=\"{POINTED}\"/>\
             <rect x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" rx=\"2\" fill=\"none\" \
             stroke=\"{POINTED}\" stroke-width=\"1.5\"/>",
            call.y,
            call.x,
            call.y,
            (call.width - 1.0).max(0.8),
            ROW - 1.0,
        );
        // A text to the left of its line ends at it, in whatever letters.
        let (text, anchor) = if is_beside && text < at {
            (at - 5.0, "end")
        } else {
            (text, "start")
        };
        let _ = write!(
            drawn,
            "<text x=\"{text:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text></g>",
            y + 13.0,
            escaped(&said),
        );
    }
    drawn
}

/// Returns as much of the name and the share as fits `room`: both, the name, the beginning of the name, or nothing.
fn label(name: &str, share: &str, room: f64) -> Option<String> {
    let both = format!("{name}  {share}");
    if width_of(&both) <= room {
        Some(both)
    } else if width_of(name) <= room {
        Some(name.to_owned())
    } else {
        shortened(name, room)
    }
}

/// Returns as much of the name as fits `room` before the share.
fn with_share(name: &str, share: &str, room: f64) -> String {
    let both = format!("{name}  {share}");
    if width_of(&both) <= room {
        return both;
    }
    let left = room - width_of(&format!("  {share}"));
    let name = shortened(name, left).unwrap_or_default();
    format!("{name}  {share}")
}

/// Returns the beginning of a text and dots, where at least a few letters fit `room`.
fn shortened(text: &str, room: f64) -> Option<String> {
    let mut beginning = String::new();
    for letter in text.chars() {
        let longer = format!("{beginning}{letter}");
        if width_of(&longer) + width_of("…") > room {
            break;
        }
        beginning = longer;
    }
    if beginning.chars().count() < FEWEST_LETTERS {
        return None;
    }
    Some(beginning + "…")
}

/// Returns the width of a text in `DejaVu Sans`, which is wider than what most systems have. Letters of similar width
/// count as the widest of them, so that a text never needs more.
fn width_of(text: &str) -> f64 {
    let ems = text.chars().map(|letter| match letter {
        ' ' | '.' | ',' | ':' | '\'' | '/' | '|' | 'i' | 'j' | 'l' | 'I' | 'J' => 0.34,
        '(' | ')' | '[' | ']' | '-' | 'f' | 'r' | 't' => 0.41,
        '%' | '@' | '…' | 'm' | 'w' | 'M' | 'W' => 1.0,
        '&' | '+' | '<' | '=' | '>' | 'A'..='Z' => 0.84,
        _ => 0.64,
    });
    LETTERS * ems.sum::<f64>()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of each text of a picture, on the left and on the right, with the text.
    fn texts(svg: &str) -> Vec<(f64, f64, String)> {
        let mut texts = Vec::new();
        for text in svg.split("<text x=\"").skip(1) {
            let (x, rest) = text.split_once('"').unwrap();
            let (attributes, rest) = rest.split_once('>').unwrap();
            let (said, _) = rest.split_once('<').unwrap();
            let (x, width) = (x.parse::<f64>().unwrap(), width_of(said));
            let left = if attributes.contains("end") {
                x - width
            } else {
                x
            };
            texts.push((left, left + width, said.to_owned()));
        }
        texts
    }

    fn drawn(frames: &[(&str, u64)]) -> Vec<(f64, f64, String)> {
        let mut boxes = Boxes::default();
        for (name, weight) in frames {
            boxes.add(&[(*name).to_owned()], *weight);
        }
        let pointed: Vec<&str> = frames.iter().map(|(name, _)| *name).collect();
        texts(&boxes.svg("A picture", |_| "#fff", &pointed))
    }

    #[test]
    fn every_call_out_is_inside_the_picture_with_its_share() {
        let long = "(waiting for the next piece of a body)";
        let longer = "an await whose name is much longer than any picture that fits a phone's width has room for";
        for frames in [
            [("a", 40), (long, 60)],
            [(long, 60), ("z", 40)],
            [("a", 95), (longer, 5)],
            [(longer, 5), ("z", 95)],
        ] {
            let texts = drawn(&frames);
            for (left, right, said) in &texts {
                assert!(*left >= 0.0 && *right <= WIDTH, "{left} to {right}: {said}");
            }
            let with_share = texts.iter().filter(|(.., said)| said.ends_with(" %"));
            assert!(with_share.count() >= frames.len(), "{texts:?}");
        }
    }

    #[test]
    fn a_label_ends_before_its_box_does() {
        let whole = ("hyper: wait for a body", "12 %");
        for (room, expected) in [
            (300.0, Some("hyper: wait for a body  12 %")),
            (170.0, Some("hyper: wait for a body")),
            (48.0, Some("hype…")),
            (41.0, Some("hyp…")),
            (30.0, None),
        ] {
            assert_eq!(label(whole.0, whole.1, room).as_deref(), expected, "{room}");
        }
    }
}
