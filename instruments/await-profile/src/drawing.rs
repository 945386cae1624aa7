//! Draws flamegraphs, whatever their stacks count.
//!
//! Inferno draws the boxes. Lines of text, numbers that point at boxes, and the colours of dark pages are added to its
//! picture. Frame names may contain anything.

mod additions;

use std::collections::BTreeMap;
use std::fmt::Write;

use inferno::differential;
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, PaletteMap};
use inferno::flamegraph::{Options, Palette, from_lines};

use self::additions::Additions;
use crate::error::FlamegraphError;

pub use self::additions::Frame;

/// Frame of CPUs with nothing to do; it is gray.
pub const IDLE: &str = "[idle]";

/// Frame that is drawn if there are no stacks at all.
pub const NOTHING: &str = "[nothing sampled]";

/// Most frames of a stack that are drawn. Profilers take 64 to 512. Each frame costs time for all below it.
const DEEPEST: usize = 1000;

/// Most rows of normal height. Rows of a higher picture are lower, so that it fits a screen.
const ROWS: usize = 36;

/// Colour of the paper if the reader's pages are dark.
pub const DARK_PAPER: &str = "#1f2328";

/// Colour of text on [`DARK_PAPER`].
pub const DARK_INK: &str = "#e3e6e8";

/// Width in px of a picture with a script, where no script runs. A picture of this width has letters of 9 px and more in a
/// column of 750 px.
const PAGE: usize = 900;

/// Width in px of a still picture, small enough for a phone, and the height of its rows.
const STILL: usize = 480;
const STILL_ROW: usize = 22;

/// Numbers that stand at the end of a frame's name. Still pictures repeat them above the frames, with a line to the box,
/// which may be too narrow for a name.
pub const MARKS: [&str; 3] = ["①", "②", "③"];

/// Colors of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theme {
    /// Warm colors, for CPU time.
    #[default]
    Cpu,
    /// Cold colors, for waiting.
    Wait,
    /// Green colors, for memory.
    Heap,
    /// Pale background, for frames that have colors of their own.
    Plain,
}

/// The place where a picture is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A page or a frame of its own: the picture has a script to zoom and search, and is as wide as its window.
    #[default]
    Page,
    /// An `<img>`, where no script runs.
    Still,
}

impl Form {
    /// Returns the number of letters in a line around the frames: as many as a column of 750 px has room for, or a still
    /// picture.
    fn letters(self) -> usize {
        match self {
            Form::Page => 100,
            Form::Still => 62,
        }
    }
}

/// Settings of a picture: the text around its frames, and their colors.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// Heading.
    pub title: String,
    /// Texts below the heading, each on lines of its own.
    pub captions: Vec<String>,
    /// Unit of a frame's number, such as `samples`.
    pub unit: String,
    /// Colors of the picture.
    pub theme: Theme,
    /// Colors of single frames, as red, green and blue.
    pub colours: BTreeMap<String, [u8; 3]>,
    /// Texts below the frames, each on lines of its own.
    pub legend: Vec<String>,
    /// Place where it is shown.
    pub form: Form,
}

impl Drawing {
    /// Draws folded stacks (lines of `frame;frame;frame count`) as an SVG that zooms and searches. The
    /// same stacks give the same bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if inferno cannot read or draw them.
    pub fn draw(&self, folded: &str) -> Result<String, FlamegraphError> {
        self.draw_with(folded, |_| None)
    }

    /// Draws folded stacks as [`draw`](Self::draw) does. `describe` may return another text for each frame, which a
    /// picture with a script shows under the mouse: the frame's name, and more in parentheses.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`draw`](Self::draw).
    pub fn draw_with(
        &self,
        folded: &str,
        describe: impl Fn(&Frame<'_>) -> Option<String>,
    ) -> Result<String, FlamegraphError> {
        self.svg(&drawable(folded), describe)
    }

    /// Draws the change between two profiles. Widths are those of `after`; red frames grew, and blue ones
    /// shrank. `before` is scaled to as many samples as `after`. Stacks that only `before` has are not in
    /// the picture.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`draw`](Self::draw).
    pub fn draw_difference(&self, before: &str, after: &str) -> Result<String, FlamegraphError> {
        let options = differential::Options {
            normalize: true,
            strip_hex: false,
        };
        let (before, after) = (drawable(before), drawable(after));
        let mut both = Vec::new();
        differential::from_readers(options, before.as_bytes(), after.as_bytes(), &mut both)
            .map_err(FlamegraphError::Draw)?;
        self.svg(&String::from_utf8_lossy(&both), |_| None)
    }

    fn svg(
        &self,
        folded: &str,
        describe: impl Fn(&Frame<'_>) -> Option<String>,
    ) -> Result<String, FlamegraphError> {
        let mut palette = PaletteMap::default();
        for (name, [r, g, b]) in &self.colours {
            let (r, g, b) = (*r, *g, *b);
            palette.insert(name, Color { r, g, b });
        }
        palette.insert(IDLE, GREY);
        palette.insert(NOTHING, GREY);
        let (colours, background) = match self.theme {
            Theme::Cpu => (BasicPalette::Hot, BackgroundColor::Yellow),
            Theme::Wait => (BasicPalette::Aqua, BackgroundColor::Blue),
            Theme::Heap => (BasicPalette::Mem, BackgroundColor::Green),
            Theme::Plain => (BasicPalette::Hot, BackgroundColor::Flat(PALE)),
        };
        let mut options = Options::default();
        options.colors = Palette::Basic(colours);
        options.bgcolors = Some(background);
        options.palette_map = Some(&mut palette);
        options.deterministic = true;
        options.title.clone_from(&self.title);
        options.count_name.clone_from(&self.unit);
        match self.form {
            Form::Page => {
                options.image_width = Some(PAGE);
                // Labels end in their boxes, where no script measures them, in wide fonts as well.
                options.font_width = 0.62;
                // Narrower boxes make towers that nobody can read and that push the others down.
                options.min_width = 0.1;
                if folded.lines().any(|line| line.matches(';').count() >= ROWS) {
                    options.frame_height = 14;
                    options.font_size = 11;
                }
            }
            Form::Still => {
                options.image_width = Some(STILL);
                options.min_width = 0.0;
                options.frame_height = STILL_ROW;
                options.font_size = 13;
                options.font_width = 0.66;
            }
        }
        let mut sorted: Vec<&str> = folded.lines().collect();
        sorted.sort_unstable();
        let mut svg = Vec::new();
        from_lines(&mut options, sorted, &mut svg).map_err(FlamegraphError::Draw)?;
        let letters = self.form.letters();
        let captions = wrapped(&self.captions, letters);
        let legend = wrapped(&self.legend, letters);
        Additions::of(&captions, &legend, self.form)
            .to(&String::from_utf8_lossy(&svg), describe)
            .map_err(FlamegraphError::Draw)
    }
}

const GREY: Color = Color {
    r: 205,
    g: 205,
    b: 205,
};
const PALE: Color = Color {
    r: 252,
    g: 252,
    b: 252,
};

/// Replaces characters that XML does not have, since a browser would refuse the whole picture, and cuts
/// stacks to the depth that is drawn.
pub fn legible(folded: &str) -> String {
    let mut legible = String::with_capacity(folded.len());
    for line in folded.split_inclusive('\n') {
        // Replace white space that XML lacks by a space, since it may follow a count.
        let line = line.replace(['\x0b', '\x0c'], " ");
        let line = line.replace(is_no_xml, "\u{fffd}");
        let deepest = line.match_indices(';').nth(DEEPEST - 1);
        match (deepest, line.trim_end().rsplit_once(' ')) {
            (Some((end, _)), Some((_, count))) => {
                // Writing to a String cannot fail.
                let _ = writeln!(legible, "{};[deeper] {count}", &line[..end]);
            }
            _ => legible.push_str(&line),
        }
    }
    legible
}

/// Returns whether XML does not have this character.
fn is_no_xml(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        other => other < ' ' || matches!(other, '\u{fffe}' | '\u{ffff}'),
    }
}

/// Returns the stacks in a form that inferno reads, with a frame even if there are none.
///
/// Inferno takes a number at the end of the last frame's name for another count, so a no-break space
/// replaces the space before it. Inferno leaves out stacks without a name, and those that begin with `# `.
/// So the former get a name, and the latter begin with a character without width.
fn drawable(folded: &str) -> String {
    let mut text = String::with_capacity(folded.len());
    let mut is_empty = true;
    for line in legible(folded).lines() {
        let (frames, count) = line.trim_end().rsplit_once(' ').unwrap_or(("", line));
        let frames = frames.trim();
        let frames = match frames.rsplit_once(' ') {
            _ if frames.is_empty() && line.trim().is_empty() => continue,
            _ if frames.is_empty() => "[no name]".to_owned(),
            Some((rest, word)) if word.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                format!("{rest}\u{a0}{word}")
            }
            _ => frames.to_owned(),
        };
        let mark = if frames.starts_with('#') {
            "\u{2060}"
        } else {
            ""
        };
        is_empty &= count == "0";
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{mark}{frames} {count}");
    }
    if is_empty {
        let _ = writeln!(text, "{NOTHING} 1");
    }
    text
}

/// Breaks texts into lines of so many letters.
fn wrapped(texts: &[String], letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + word.chars().count() >= letters {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers behind each `beginning`.
    fn numbers(svg: &str, beginning: &str) -> Vec<f64> {
        let parts = svg.split(beginning).skip(1);
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
        parts
            .map(|part| {
                let end = part.find(|c| !is_of_number(c)).unwrap();
                part[..end].parse().unwrap()
            })
            .collect()
    }

    #[test]
    fn lines_of_text_have_room_around_the_frames() {
        let drawing = Drawing {
            title: "A & B".to_owned(),
            captions: vec!["<above> ".repeat(40)],
            legend: vec!["below ".repeat(40), "last".to_owned()],
            ..Drawing::default()
        };
        let svg = drawing.draw("main;read 9\nmain;write 1\n").unwrap();
        assert_eq!(svg.matches("class=\"caption\"").count(), 4);
        let frames = numbers(
            &svg,
            "<svg id=\"frames\" x=\"10\" width=\"880\" total_samples=\"10\" y=\"",
        )[0];
        let captions = numbers(&svg, "class=\"caption\" x=\"50%\" y=\"");
        assert!(captions.iter().all(|y| *y < frames + 37.0), "{captions:?}");
        let height = numbers(&svg, " height=\"")[0];
        let lines = numbers(&svg, "<text x=\"10\" y=\"");
        assert!(
            lines.len() == 4 && lines.iter().all(|y| *y < height),
            "{svg}"
        );
        assert!(svg.contains(&format!("viewBox=\"0 0 900 {height}\"")));
    }

    #[test]
    fn numbers_stand_apart_and_point_at_their_boxes() {
        let drawing = Drawing {
            form: Form::Still,
            ..Drawing::default()
        };
        let svg = drawing.draw("a 999990\nb ①;x 5\nc ② 5\n").unwrap();
        let at = numbers(&svg, "class=\"number\" x=\"");
        let [first, second] = at[..] else {
            panic!("{svg}")
        };
        assert!(
            second - first > 15.0 && second < STILL as f64 - 9.0,
            "{at:?}"
        );
        // Both boxes are at the right edge, side by side.
        let boxes = numbers(&svg, "<rect class=\"pointer\" x=\"");
        assert!(
            boxes.iter().all(|x| (469.0..=470.0).contains(x)),
            "{boxes:?}"
        );
    }

    #[test]
    fn a_picture_follows_a_dark_page() {
        let svg = Drawing::default().draw("main 1\n").unwrap();
        let (_, dark) = svg
            .split_once("@media (prefers-color-scheme: dark)")
            .unwrap();
        assert!(dark.contains(DARK_PAPER) && dark.contains(DARK_INK));
        assert!(svg.contains("style=\"color-scheme:light dark\""));
    }
}
