//! Boxes of a flamegraph without zoom and search: with their shares in them, and small enough for a phone. The
//! same boxes are also a list, for readers who cannot see them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use await_profile::drawing::{Drawing, Form, Theme};

use super::{FlamegraphError, callouts};
use crate::folded::stacks;

/// Space between a box's name and its share.
const BEFORE_SHARE: &str = "  ";

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
        self.visit(self.weight, 0, &mut |depth, name, box_| {
            let indent = "  ".repeat(depth);
            let share = share(box_.weight, self.weight);
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

    /// Draws the picture, for an `<img>`. `colour` gives the colour of a frame, as red, green and blue. A number and a
    /// line below the picture point at the widest box whose name begins with each text in `pointed`, because the box
    /// may be too narrow to be seen.
    ///
    /// # Errors
    ///
    /// Fails if the drawing library refuses the boxes.
    pub fn draw(
        &self,
        title: &str,
        colour: impl Fn(&str) -> [u8; 3],
        pointed: &[&str],
    ) -> Result<String, FlamegraphError> {
        let pointed = callouts::point_at(&self.folded(), pointed)?;
        let mut colours = BTreeMap::new();
        for stack in stacks(&pointed.folded) {
            for frame in stack?.0.split(';') {
                let (name, _) = frame.split_once(BEFORE_SHARE).unwrap_or((frame, ""));
                colours.insert(frame.to_owned(), colour(name));
            }
        }
        let drawing = Drawing {
            title: title.to_owned(),
            theme: Theme::Plain,
            colours,
            legend: pointed.legend,
            form: Form::Still,
            ..Drawing::default()
        };
        drawing
            .draw_with(&pointed.folded, |frame| Some(frame.name.to_owned()))
            .map_err(|error| FlamegraphError::Refused(error.to_string()))
    }

    /// Returns the boxes that are drawn as folded stacks, with the share of each behind its name.
    fn folded(&self) -> String {
        let mut text = String::new();
        let mut path = Vec::new();
        self.visit(self.weight, 0, &mut |depth, name, box_| {
            path.truncate(depth);
            path.push(format!(
                "{name}{BEFORE_SHARE}{}",
                share(box_.weight, self.weight)
            ));
            let above = box_.shown(self.weight, depth + 1);
            let top = box_.weight - above.map(|(_, above)| above.weight).sum::<u64>();
            if top > 0 {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{} {top}", path.join(";"));
            }
        });
        text
    }

    /// Calls `see` for every box that is shown, with its row and its name, from the bottom up.
    fn visit<'a>(
        &'a self,
        whole: u64,
        depth: usize,
        see: &mut impl FnMut(usize, &'a str, &'a Boxes),
    ) {
        for (name, above) in self.shown(whole, depth) {
            see(depth, name, above);
            above.visit(whole, depth + 1, see);
        }
    }

    /// Returns the boxes above this one that have at least 1.5 % of the whole. At the bottom it returns all, because a
    /// sliver next to an idle machine is a finding.
    fn shown(&self, whole: u64, depth: usize) -> impl Iterator<Item = (&str, &Boxes)> {
        let is_shown = move |weight: u64| weight > 0 && (depth == 0 || weight * 200 >= 3 * whole);
        let above = self.above.iter();
        above
            .map(|(name, above)| (name.as_str(), above))
            .filter(move |(_, above)| is_shown(above.weight))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(frames: &[(&str, u64)]) -> String {
        let mut boxes = Boxes::default();
        for (name, weight) in frames {
            boxes.add(&[(*name).to_owned()], *weight);
        }
        let pointed: Vec<&str> = frames.iter().map(|(name, _)| *name).collect();
        boxes.draw("A picture", |_| [255; 3], &pointed).unwrap()
    }

    #[test]
    fn every_call_out_has_a_number_and_a_line_with_its_share() {
        for (frames, lines) in [
            ([("a", 40), ("z", 60)], ["① a  40 %", "② z  60 %"]),
            ([("a", 9_999), ("z", 1)], ["① a  100 %", "② z  0.0 %"]),
        ] {
            let svg = drawn(&frames);
            for (mark, line) in ["①", "②"].into_iter().zip(lines) {
                assert_eq!(svg.matches(&format!(">{mark}</text>")).count(), 1, "{svg}");
                assert!(svg.contains(&format!(">{line}</text>")), "{line}: {svg}");
            }
        }
    }

    #[test]
    fn a_box_says_its_name_and_share_without_a_script() {
        let svg = drawn(&[("app::read, line 31", 90), ("idle", 10)]);
        assert!(svg.contains(">app::read, line 31  90 % ①</text>"), "{svg}");
        assert!(
            svg.contains(">idl..</text>") && !svg.contains("script"),
            "{svg}"
        );
    }
}
