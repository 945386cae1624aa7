//! The drawer of flamegraphs, whatever their stacks count.
//!
//! It is inferno, told to draw pictures that stand in other pages and on phones, of frames whose names any
//! program may have chosen.

use std::collections::BTreeMap;
use std::fmt::Write;

use inferno::differential;
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, PaletteMap};
use inferno::flamegraph::{Options, Palette, from_lines};

use crate::error::FlamegraphError;

/// The frame that stands for CPUs with nothing to do; it is grey.
pub const IDLE: &str = "[idle]";

/// The frame that is drawn where there are no stacks at all.
pub const NOTHING: &str = "[nothing sampled]";

/// Frames of a stack that are drawn; profilers take 64 to 512 of them. Each takes time for all below it.
const DEEPEST: usize = 1000;

/// More rows than these are drawn lower, so that the picture fits a screen.
const ROWS: usize = 36;

/// Stands for the break between two captions until inferno has drawn them.
const BREAK: &str = " ~~ ";

/// What a picture looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theme {
    /// Warm colours burn.
    #[default]
    Cpu,
    /// Cold ones wait.
    Wait,
    /// Green ones hold memory.
    Heap,
    /// Pale ground, for frames that have colours of their own.
    Plain,
}

/// What stands around the frames, and how these look.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// The heading.
    pub title: String,
    /// Up to two lines below it.
    pub captions: Vec<String>,
    /// What a frame's number counts, such as `samples`.
    pub unit: String,
    /// What the picture looks like.
    pub theme: Theme,
    /// Frames that have a colour of their own, as red, green and blue.
    pub colours: BTreeMap<String, [u8; 3]>,
    /// Lines below the picture, which becomes so much higher.
    pub legend: Vec<String>,
}

impl Drawing {
    /// Draws folded stacks, lines of `frame;frame;frame count`, as an SVG that zooms and searches. The
    /// same stacks give the same bytes.
    ///
    /// # Errors
    ///
    /// If inferno cannot read or draw them.
    pub fn draw(&self, folded: &str) -> Result<String, FlamegraphError> {
        self.svg(&drawable(folded))
    }

    /// Draws what changed between two profiles: widths are those of `after`, red frames grew, blue ones
    /// shrank. `before` is scaled to as many samples as `after`; stacks that only `before` has are not in
    /// the picture.
    ///
    /// # Errors
    ///
    /// As [`draw`](Self::draw).
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
        let own = self.colours.iter().map(|(name, rgb)| (name.as_str(), *rgb));
        for (name, [r, g, b]) in own.chain([(IDLE, GREY), (NOTHING, GREY)]) {
            palette.insert(name, Color { r, g, b });
        }
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
        options.subtitle = Some(self.captions.join(BREAK)).filter(|text| !text.is_empty());
        options.count_name.clone_from(&self.unit);
        // Narrower boxes make towers that nobody can read and that push the others down.
        options.min_width = 0.1;
        let rows = folded.lines().map(|line| line.matches(';').count() + 1);
        if rows.max().unwrap_or(0) > ROWS {
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

const GREY: [u8; 3] = [205, 205, 205];
const PALE: Color = Color {
    r: 252,
    g: 252,
    b: 252,
};

/// Stacks without what XML has no characters for, as a browser would refuse the whole picture, and not
/// deeper than is drawn.
pub fn legible(folded: &str) -> String {
    let is_no_xml = |c: char| match c {
        '\t' | '\n' | '\r' => false,
        c => c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}'),
    };
    let lines = folded.split_inclusive('\n').map(|line| {
        // White space of XML's in the place of other, which may stand behind a count.
        let line = line.replace(['\x0b', '\x0c'], " ");
        let line = line.replace(is_no_xml, "\u{fffd}");
        let deepest = line.match_indices(';').nth(DEEPEST - 1);
        match deepest.zip(line.trim_end().rsplit_once(' ')) {
            Some(((end, _), (_, count))) => format!("{};[deeper] {count}\n", &line[..end]),
            None => line,
        }
    });
    lines.collect()
}

/// The stacks as inferno takes them for such, with something to see in any case. It would take a number at
/// the end of the last frame's name for another count, and leave out what has no name or begins with `# `:
/// that gets a character without a width before it.
fn drawable(folded: &str) -> String {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut text = String::with_capacity(folded.len());
    let mut is_empty = true;
    for line in legible(folded).lines() {
        let (frames, count) = line.trim_end().rsplit_once(' ').unwrap_or(("", line));
        let frames = frames.trim();
        let frames = match frames.rsplit_once(' ') {
            _ if frames.is_empty() && line.trim().is_empty() => continue,
            _ if frames.is_empty() => "[no name]".to_owned(),
            Some((rest, number)) if is_number(number) => format!("{rest}\u{a0}{number}"),
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

/// inferno's script keeps zoom and search in the page's address. A frame of a
/// single-file report has no address to change, and the browser's refusal
/// would break off the script. Its search button shows only under a mouse,
/// which a phone does not have. A frame that a busy browser has not laid out
/// yet is 0 px wide, less the margins; widths below 0 and divisions by 0 would
/// be errors in its console until the frame has its size.
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

/// Inferno has one line for a subtitle; there is room for two.
fn break_caption(svg: &str) -> String {
    let whole = || {
        let at = svg.find("<text id=\"subtitle\"")?;
        let open = at + svg[at..].find('>')? + 1;
        let close = open + svg[open..].find("</text>")?;
        let (first, second) = svg[open..close].split_once(BREAK)?;
        let line = |y: u32, text: &str| format!("<tspan x=\"50%\" y=\"{y}\">{text}</tspan>");
        let lines = line(41, first) + &line(55, second);
        Some([&svg[..open], &lines, &svg[close..]].concat())
    };
    whole().unwrap_or_else(|| svg.replace(BREAK, " | "))
}

/// Inferno has no room below the frames.
fn with_legend(svg: String, legend: &[String]) -> String {
    const LINE: usize = 17;
    let height = svg
        .split_once(" height=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse::<usize>().ok());
    let (Some(height), Some(end), false) = (height, svg.rfind("</svg>"), legend.is_empty()) else {
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

/// A text as XML has it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
