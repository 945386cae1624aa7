//! Shared parts of all plots: size, colours, marks, heading and key.

use std::{fmt::Write as _, ops::Range};

use await_profile::drawing::{DARK_INK, DARK_PAPER};
use ecosystem::escaped;
use plotters::{
    coord::Shift,
    drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea},
    element::{Circle, PathElement, Rectangle, Text},
    prelude::{ChartBuilder, LineSeries, SVGBackend},
    style::{Color as _, IntoFont as _, IntoTextStyle as _, RGBColor, ShapeStyle},
};
use statistics::figures;

use crate::scale::{self, Scale, is_apart};

/// Width and height in px. They are small, so that a phone that shows a plot at 360 px
/// still shows letters of 10 px.
const SIZE: (u32, u32) = (480, 370);

/// Size of the letters of labels, in px.
const LETTERS: u32 = 18;

/// Height of a line of the key, in px.
const KEY_LINE: u32 = 22;

/// Size of the letters of the heading, in px.
const HEADING: u32 = 21;

/// Light colours, which stand in the file. The style sheet below turns them dark
/// if the reader's page is dark.
const PAPER: RGBColor = RGBColor(0xfd, 0xfd, 0xfb);
const INK: RGBColor = RGBColor(0x22, 0x26, 0x2a);
const FAINT: RGBColor = RGBColor(0xd9, 0xdc, 0xde);

/// Colour and mark of a series. The colours are Okabe and Ito's, which colour-blind readers can tell
/// apart; marks differ as well.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    colour: RGBColor,
    dark: &'static str,
    is_round: bool,
}

const LOOKS: [Look; 4] = [
    look(0xd5_5e_00, "#ff9a52", true),
    look(0x00_72_b2, "#63b8ec", false),
    look(0x00_9e_73, "#3cc79a", true),
    look(0xcc_79_a7, "#e39cc4", false),
];

const fn look(colour: u32, dark: &'static str, is_round: bool) -> Look {
    let [_, red, green, blue] = colour.to_be_bytes();
    Look {
        colour: RGBColor(red, green, blue),
        dark,
        is_round,
    }
}

impl Look {
    /// Look of an entry of the key that belongs to no series: the colour of the text.
    pub const PLAIN: Self = Self {
        colour: INK,
        dark: DARK_INK,
        is_round: true,
    };

    /// Returns the look of the series `index`; the looks repeat.
    pub fn nth(index: usize) -> Self {
        LOOKS[index % LOOKS.len()]
    }

    /// Returns a look for each of these series, named after a variant or beginning with its name, as `problem, ping`. The
    /// problem's are orange and the solution's blue, the first with its own mark and the second with the other one. From
    /// the fifth look on, colours repeat with the other mark.
    pub fn of_each<'a>(series: &[&'a str]) -> Vec<(&'a str, Self)> {
        let mut others = 2..;
        let mut of_variants = [0, 0];
        let mut looks = Vec::new();
        for name in series {
            let variant = name.split([',', ':']).next().unwrap_or(name);
            let is_known = ["problem", "solution"]
                .iter()
                .position(|known| *known == variant);
            let (index, has_other_mark) = if let Some(index) = is_known {
                of_variants[index] += 1;
                (index, of_variants[index] % 2 == 0)
            } else {
                let index = others.next().unwrap_or_default();
                (index, index >= LOOKS.len())
            };
            let first = Self::nth(index);
            let is_round = first.is_round ^ has_other_mark;
            looks.push((*name, Self { is_round, ..first }));
        }
        looks
    }

    fn line(self) -> ShapeStyle {
        self.colour.stroke_width(2)
    }
}

/// Returns whether a value can stand on an axis. plotters searches for round labels, and
/// never returns if the range is infinite.
pub fn is_drawable(value: f64) -> bool {
    value == 0.0 || (1e-9..=1e15).contains(&value.abs())
}

/// Marks, lines and cells in one colour.
pub struct Drawn {
    /// Its name in the key; without a name it has no entry there.
    pub name: String,
    /// Its colour and shape.
    pub look: Look,
    /// Points that a line joins.
    pub line: Vec<(f64, f64)>,
    /// Single points.
    pub marks: Vec<(f64, f64)>,
    /// `true` for hollow marks: lower bounds, or the same server, measured again for comparison.
    pub hollow: bool,
    /// Filled parts, as in a heat map.
    pub cells: Vec<Cell>,
}

/// A part of the plot that is filled.
pub struct Cell {
    /// Its extent on the axis across.
    pub across: Range<f64>,
    /// Its extent on the axis up.
    pub up: Range<f64>,
    /// Strength of the colour, from 0 to 1.
    pub share: f64,
}

impl Drawn {
    /// Returns a series with nothing in it yet.
    pub fn of(name: &str, look: Look) -> Self {
        Self {
            name: name.to_owned(),
            look,
            line: Vec::new(),
            marks: Vec::new(),
            hollow: false,
            cells: Vec::new(),
        }
    }

    /// Returns the key's entry for hollow marks that are lower bounds.
    pub fn at_least() -> Self {
        Self {
            hollow: true,
            ..Self::of("at least", Look::PLAIN)
        }
    }
}

type Refused = DrawingAreaErrorKind<std::io::Error>;

/// Number of letters that an axis has room for.
const ROOM: usize = 46;

/// One direction of a plot.
pub struct Axis<'a> {
    /// Range of its values, and their spacing.
    pub scale: Scale,
    /// Its title, with the unit.
    pub name: String,
    /// Label of a value.
    pub label: &'a dyn Fn(f64) -> String,
    /// Largest number of labels.
    pub labels: usize,
}

impl<'a> Axis<'a> {
    /// Returns an axis of time from 0 to `end`, in seconds.
    pub fn seconds(end: f64) -> Self {
        Self {
            scale: Scale::linear(0.0..end),
            name: "time (s)".to_owned(),
            label: &figures::count,
            labels: 7,
        }
    }

    /// Returns an axis from the lowest to the highest value, with a log scale if they are far apart. Its name is cut
    /// to the room on a phone.
    pub fn values(name: &str, span: (f64, f64), label: &'a dyn Fn(f64) -> String) -> Self {
        let scale = if is_apart(span) { " (log scale)" } else { "" };
        let room = ROOM - scale.len();
        let first = name.split(", ").next().unwrap_or(name);
        let name = if name.len() <= room { name } else { first };
        let name = if name.len() <= room {
            format!("{name}{scale}")
        } else {
            let words = name.match_indices(' ').map(|(end, _)| end);
            let end = words.take_while(|end| *end < room).last().unwrap_or(0);
            format!("{}…{scale}", &name[..end])
        };
        Self {
            scale: Scale::over(span, Vec::new()),
            name,
            label,
            labels: 6,
        }
    }
}

/// A plot, whatever it is of.
pub struct Plot<'a> {
    /// Its heading.
    pub title: &'a str,
    /// Description for readers who cannot see it.
    pub description: String,
    /// The axis from left to right.
    pub across: Axis<'a>,
    /// `true` if vertical lines stand on the labels of the axis across.
    pub has_columns: bool,
    /// The axis from bottom to top.
    pub up: Axis<'a>,
    /// Everything in it, the first at the back.
    pub drawn: Vec<Drawn>,
}

impl Plot<'_> {
    /// Draws the plot as SVG: a heading, a key below it, and the series between the axes. `None` if plotters refuses
    /// it, which it does only for files.
    pub fn svg(self) -> Option<String> {
        let (title, description) = (self.title, self.description.clone());
        let mut svg = String::new();
        self.draw(&mut svg).ok()?;
        Some(themed(&svg, title, &description))
    }

    fn draw(self, svg: &mut String) -> Result<(), Refused> {
        // A key of several lines makes the plot higher, so that the series keep their room.
        let key: Vec<&Drawn> = self
            .drawn
            .iter()
            .filter(|one| !one.name.is_empty())
            .collect();
        let lines = places(&key).iter().map(|(_, line)| *line).max();
        let size = (SIZE.0, SIZE.1 + lines.unwrap_or(0) * KEY_LINE);
        let area = SVGBackend::with_string(svg, size).into_drawing_area();
        area.fill(&PAPER)?;
        let has_lines = self.drawn.iter().any(|drawn| !drawn.line.is_empty());
        let top = heading(&area, self.title, &key, has_lines)?;
        let mut chart = ChartBuilder::on(&area.margin(top, 6, 4, 14))
            .x_label_area_size(54)
            .y_label_area_size(86)
            .margin_right(20)
            .build_cartesian_2d(self.across.scale, self.up.scale)?;
        let mut mesh = chart.configure_mesh();
        if !self.has_columns {
            mesh.disable_x_mesh();
        }
        let letters = || ("sans-serif", LETTERS).into_font().color(&INK);
        mesh.x_desc(self.across.name)
            .y_desc(self.up.name)
            .x_label_formatter(&|x: &f64| scale::text(*x, self.across.label))
            .y_label_formatter(&|y: &f64| scale::text(*y, self.up.label))
            .x_labels(self.across.labels)
            .y_labels(self.up.labels)
            .label_style(letters())
            .axis_desc_style(letters())
            .axis_style(INK)
            .bold_line_style(FAINT)
            .light_line_style(PAPER)
            .draw()?;
        for drawn in self.drawn {
            if !drawn.line.is_empty() {
                chart.draw_series(LineSeries::new(drawn.line, drawn.look.line()))?;
            }
            let filled = drawn.cells.iter().map(|cell| {
                let corners = [
                    (cell.across.start, cell.up.start),
                    (cell.across.end, cell.up.end),
                ];
                Rectangle::new(corners, drawn.look.colour.mix(cell.share).filled())
            });
            chart.draw_series(filled)?;
            let inside = chart.plotting_area();
            let (left, above) = inside.get_pixel_range();
            let plain = inside.strip_coord_spec();
            for at in drawn.marks {
                let (x, y) = inside.map_coordinate(&at);
                let at = (x - left.start, y - above.start);
                set_mark(&plain, at, drawn.look, drawn.hollow)?;
            }
        }
        area.present()
    }
}

fn set_mark(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    (x, y): (i32, i32),
    look: Look,
    hollow: bool,
) -> Result<(), Refused> {
    let style = if hollow {
        look.line()
    } else {
        look.colour.filled()
    };
    if look.is_round {
        area.draw(&Circle::new((x, y), 5, style))
    } else {
        area.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], style))
    }
}

/// Draws the heading and the key; returns the height that they take, in px.
fn heading(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    key: &[&Drawn],
    has_lines: bool,
) -> Result<u32, Refused> {
    let say = |text: &str, at: (i32, i32), size: u32| {
        area.draw(&Text::new(
            text.to_owned(),
            at,
            ("sans-serif", size).into_text_style(area).color(&INK),
        ))
    };
    say(title, (14, 10), HEADING)?;
    let mut bottom = 40;
    for (entry, (x, line)) in key.iter().zip(places(key)) {
        let y = 40 + i32::try_from(line * KEY_LINE).unwrap_or(0);
        if has_lines {
            let path = PathElement::new(vec![(x, y + 7), (x + 22, y + 7)], entry.look.line());
            area.draw(&path)?;
        }
        set_mark(area, (x + 11, y + 7), entry.look, entry.hollow)?;
        say(&entry.name, (x + 28, y - 1), LETTERS)?;
        bottom = y;
    }
    Ok(u32::try_from(bottom).unwrap_or(0) + if key.is_empty() { 2 } else { 26 })
}

/// Returns the beginning of each entry of the key, in px from the left, and its line.
fn places(key: &[&Drawn]) -> Vec<(i32, u32)> {
    let (mut x, mut line) = (14, 0);
    let mut places = Vec::new();
    for entry in key {
        // In wide fonts, sans-serif letters are a bit more than half as wide as they are high.
        let width = 34 + i32::try_from(entry.name.chars().count()).unwrap_or(0) * 19 / 2;
        if x > 14 && x + width > 480 {
            x = 14;
            line += 1;
        }
        places.push((x, line));
        x += width + 14;
    }
    places
}

/// Adds the texts for readers who cannot see the plot, and the colours of dark pages.
fn themed(svg: &str, title: &str, description: &str) -> String {
    let mut rules = String::new();
    let page = [(PAPER, DARK_PAPER), (INK, DARK_INK), (FAINT, "#42484e")];
    let looks = LOOKS.map(|look| (look.colour, look.dark));
    for (RGBColor(r, g, b), dark) in page.into_iter().chain(looks) {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
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
