//! What all plots share: size, colours, marks, heading and key.

use std::{collections::BTreeSet, fmt::Write as _};

use plotters::{
    coord::{Shift, cartesian::Cartesian2d, ranged1d::Ranged},
    drawing::{DrawingArea, IntoDrawingArea},
    element::{Circle, PathElement, Rectangle, Text},
    prelude::SVGBackend,
    style::{Color as _, IntoFont as _, IntoTextStyle as _, RGBColor, ShapeStyle, TextStyle},
};

use super::PlotError;
use measurement::record::Round;

/// Width and height in px. Small, so that a phone that shows it at 360 px
/// still shows letters of 10 px.
const SIZE: (u32, u32) = (480, 370);

/// Letters of labels, in px.
pub(super) const LETTERS: u32 = 18;

/// Letters of the heading, in px.
const HEADING: u32 = 21;

/// The light colours stand in the file; the style sheet below turns them dark
/// where the reader's page is. The two for data are Okabe and Ito's, which
/// people who see fewer colours can tell apart; marks differ as well.
pub(super) const PAPER: RGBColor = RGBColor(0xfd, 0xfd, 0xfb);
pub(super) const INK: RGBColor = RGBColor(0x22, 0x26, 0x2a);
pub(super) const FAINT: RGBColor = RGBColor(0xd9, 0xdc, 0xde);

const DARK: [(RGBColor, &str); 7] = [
    (PAPER, "#1f2328"),
    (INK, "#e3e6e8"),
    (FAINT, "#42484e"),
    (Look::A.colour(), "#ff9a52"),
    (Look::B.colour(), "#63b8ec"),
    (Look::C.colour(), "#3cc79a"),
    (Look::D.colour(), "#e39cc4"),
];

/// Whether a value can stand on an axis. plotters searches for round labels
/// and does not come back from a range without end.
pub(super) fn is_drawable(value: f64) -> bool {
    value == 0.0 || (1e-9..=1e15).contains(&value.abs())
}

/// How a series looks: colour and mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    A,
    B,
    C,
    D,
}

impl Look {
    /// Looks in turn, for any number of series.
    pub(super) fn nth(index: usize) -> Self {
        [Self::A, Self::B, Self::C, Self::D][index % 4]
    }

    /// The problem is always orange round marks, the solution blue square ones.
    pub(super) fn of_variant(variant: &str) -> Self {
        match variant {
            measurement::claim::PROBLEM => Self::A,
            measurement::claim::SOLUTION => Self::B,
            measurement::claim::EXERCISE => Self::C,
            _ => Self::D,
        }
    }

    pub(super) const fn colour(self) -> RGBColor {
        match self {
            Self::A => RGBColor(0xd5, 0x5e, 0x00),
            Self::B => RGBColor(0x00, 0x72, 0xb2),
            Self::C => RGBColor(0x00, 0x9e, 0x73),
            Self::D => RGBColor(0xcc, 0x79, 0xa7),
        }
    }

    fn is_round(self) -> bool {
        matches!(self, Self::A | Self::C)
    }

    pub(super) fn line(self) -> ShapeStyle {
        self.colour().stroke_width(2)
    }
}

/// The variants among `rounds`, in alphabetical order: problem before solution.
pub(super) fn variants<'a>(rounds: impl Iterator<Item = &'a Round>) -> BTreeSet<&'a str> {
    rounds.map(|round| round.variant.as_str()).collect()
}

/// Where a mark goes, how it looks, and whether it is hollow: hollow ones are
/// the same thing, measured for comparison.
pub(super) type Mark = ((f64, f64), Look, bool);

/// Sets marks into a chart's plotting area.
pub(super) fn set_marks<X, Y>(
    area: &DrawingArea<SVGBackend<'_>, Cartesian2d<X, Y>>,
    marks: impl IntoIterator<Item = Mark>,
) -> Result<(), String>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let (across, down) = area.get_pixel_range();
    let plain = area.strip_coord_spec();
    for (at, look, hollow) in marks {
        let (x, y) = area.map_coordinate(&at);
        set_mark(&plain, (x - across.start, y - down.start), look, hollow)?;
    }
    Ok(())
}

fn set_mark(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    (x, y): (i32, i32),
    look: Look,
    hollow: bool,
) -> Result<(), String> {
    let style = if hollow {
        look.line()
    } else {
        look.colour().filled()
    };
    if look.is_round() {
        area.draw(&Circle::new((x, y), 5, style))
    } else {
        area.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], style))
    }
    .map_err(|error| error.to_string())
}

/// One entry of the key.
pub(super) struct KeyEntry {
    pub(super) text: String,
    pub(super) look: Look,
    pub(super) hollow: bool,
    pub(super) line: bool,
}

pub(super) fn label_style(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Draws a heading, a key below it, and what `draw` puts into the rest.
pub(super) fn plot(
    title: &str,
    description: &str,
    key: &[KeyEntry],
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = area
            .fill(&PAPER)
            .map_err(|error| error.to_string())
            .and_then(|()| heading(&area, title, key))
            .and_then(|top| draw(&area.margin(top, 6, 4, 14)))
            .and_then(|()| area.present().map_err(|error| error.to_string()));
        drawn.map_err(|cause| PlotError::Refused {
            title: title.to_owned(),
            cause,
        })?;
    }
    Ok(themed(&svg, title, description))
}

/// Heading and key; returns the height that they take, in px.
fn heading(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    key: &[KeyEntry],
) -> Result<u32, String> {
    let say = |text: &str, at: (i32, i32), size: u32| {
        area.draw(&Text::new(
            text.to_owned(),
            at,
            ("sans-serif", size).into_text_style(area).color(&INK),
        ))
        .map_err(|error| error.to_string())
    };
    say(title, (14, 10), HEADING)?;
    let (mut x, mut y) = (14, 40);
    for entry in key {
        // Sans-serif letters are about half as wide as they are high.
        let width = 34 + i32::try_from(entry.text.chars().count()).unwrap_or(0) * 8;
        if x > 14 && x + width > 480 {
            x = 14;
            y += 22;
        }
        if entry.line {
            let path = PathElement::new(vec![(x, y + 7), (x + 22, y + 7)], entry.look.line());
            area.draw(&path).map_err(|error| error.to_string())?;
        }
        set_mark(area, (x + 11, y + 7), entry.look, entry.hollow)?;
        say(&entry.text, (x + 28, y - 1), LETTERS)?;
        x += width + 14;
    }
    Ok(u32::try_from(y).unwrap_or(0) + if key.is_empty() { 2 } else { 26 })
}

/// Adds the words for those who do not see it, and the colours of dark pages.
fn themed(svg: &str, title: &str, description: &str) -> String {
    let hex = |RGBColor(r, g, b): RGBColor| format!("#{r:02X}{g:02X}{b:02X}");
    let mut rules = String::new();
    for (light, dark) in DARK {
        let light = hex(light);
        // Writing to a String cannot fail.
        let _ = write!(
            rules,
            "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}"
        );
    }
    let words = format!(
        " role=\"img\" style=\"color-scheme:light dark\"><title>{}</title><desc>{}</desc><style>text{{font-family:system-ui,sans-serif}}@media(prefers-color-scheme:dark){{{rules}}}</style>",
        escaped(title),
        escaped(description)
    );
    svg.replacen('>', &words, 1)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
