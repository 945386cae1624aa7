//! Draws flamegraphs, whatever their stacks count.
//!
//! It uses inferno, with options for pictures that are part of other pages or are viewed on phones. Frame
//! names may contain anything.

use std::collections::BTreeMap;
use std::fmt::Write;

use inferno::differential;
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, PaletteMap};
use inferno::flamegraph::{Options, Palette, from_lines};

use crate::error::FlamegraphError;

/// Frame of CPUs with nothing to do; it is gray.
pub const IDLE: &str = "[idle]";

/// Frame that is drawn if there are no stacks at all.
pub const NOTHING: &str = "[nothing sampled]";

/// Most frames of a stack that are drawn. Profilers take 64 to 512. Each frame costs time for all below it.
const DEEPEST: usize = 1000;

/// Most rows of normal height. Rows of a higher picture are lower, so that it fits a screen.
const ROWS: usize = 36;

/// Placeholder for the break between two captions, until inferno has drawn them.
const BREAK: &str = " ~~ ";

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

/// Settings of a picture: the text around its frames, and their colors.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// Heading.
    pub title: String,
    /// Up to two lines below the heading.
    pub captions: Vec<String>,
    /// Unit of a frame's number, such as `samples`.
    pub unit: String,
    /// Colors of the picture.
    pub theme: Theme,
    /// Colors of single frames, as red, green and blue.
    pub colours: BTreeMap<String, [u8; 3]>,
    /// Lines below the picture, which add to its height.
    pub legend: Vec<String>,
}

impl Drawing {
    /// Draws folded stacks (lines of `frame;frame;frame count`) as an SVG that zooms and searches. The
    /// same stacks give the same bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if inferno cannot read or draw them.
    pub fn draw(&self, folded: &str) -> Result<String, FlamegraphError> {
        self.svg(&drawable(folded))
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
        self.svg(&String::from_utf8_lossy(&both))
    }

    fn svg(&self, folded: &str) -> Result<String, FlamegraphError> {
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
        let captions = self.captions.join(BREAK);
        if !captions.is_empty() {
            options.subtitle = Some(captions);
        }
        options.count_name.clone_from(&self.unit);
        // Narrower boxes make towers that nobody can read and that push the others down.
        options.min_width = 0.1;
        if folded.lines().any(|line| line.matches(';').count() >= ROWS) {
            options.frame_height = 14;
            options.font_size = 11;
        }
        let mut sorted: Vec<&str> = folded.lines().collect();
        sorted.sort_unstable();
        let mut svg = Vec::new();
        from_lines(&mut options, sorted, &mut svg).map_err(FlamegraphError::Draw)?;
        let svg = forgiving(&String::from_utf8_lossy(&svg));
        Ok(with_legend(break_caption(&svg), &self.legend))
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

/// Makes inferno's script work in single-file reports, on phones, and in a busy browser.
///
/// The script keeps zoom and search in the page's address. A frame of a single-file report has no
/// address to change, and the browser's refusal would stop the script. The search button shows only
/// under a mouse, which a phone does not have. A frame that a busy browser has not laid out yet is
/// 0 px wide, less the margins. Widths below 0 and divisions by 0 would be errors in its console.
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

/// Splits the caption into two lines. Inferno has one line for a subtitle, but there is room for two.
fn break_caption(svg: &str) -> String {
    match with_two_lines(svg) {
        Some(broken) => broken,
        None => svg.replace(BREAK, " | "),
    }
}

fn with_two_lines(svg: &str) -> Option<String> {
    let at = svg.find("<text id=\"subtitle\"")?;
    let open = at + svg[at..].find('>')? + 1;
    let close = open + svg[open..].find("</text>")?;
    let (first, second) = svg[open..close].split_once(BREAK)?;
    let (before, after) = (&svg[..open], &svg[close..]);
    Some(format!(
        "{before}<tspan x=\"50%\" y=\"41\">{first}</tspan><tspan x=\"50%\" y=\"55\">{second}</tspan>{after}"
    ))
}

/// Adds lines below the frames, for which inferno has no room.
fn with_legend(svg: String, legend: &[String]) -> String {
    const LINE: usize = 17;
    let (Some(height), Some(end), false) =
        (height_of(&svg), svg.rfind("</svg>"), legend.is_empty())
    else {
        return svg;
    };
    let mut lines = String::new();
    for (place, line) in (1..).zip(legend) {
        let y = height + place * LINE - 6;
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "<text x=\"10\" y=\"{y}\">{}</text>", escaped(line));
    }
    let higher = height + legend.len() * LINE + 4;
    let (picture, rest) = svg.split_at(end);
    let picture = picture
        .replacen(
            &format!(" height=\"{height}\""),
            &format!(" height=\"{higher}\""),
            2,
        )
        .replacen(&format!("1200 {height}\""), &format!("1200 {higher}\""), 1);
    format!("{picture}{lines}{rest}")
}

fn height_of(svg: &str) -> Option<usize> {
    let (_, rest) = svg.split_once(" height=\"")?;
    let (height, _) = rest.split_once('"')?;
    height.parse().ok()
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
