//! Adds to inferno's picture what it has no options for: lines of text, numbers that point at boxes, the colours of dark
//! pages, and pictures without a script.

use std::fmt::Write as _;
use std::io::{Error, Write as _};
use std::str::FromStr;

use quick_xml::escape::{partial_escape as escaped, unescape};
use quick_xml::events::{BytesCData, BytesStart, Event};
use quick_xml::{Reader, Writer};

use super::{DARK_INK, DARK_PAPER, Form, MARKS, STILL_ROW};

/// Distance of two lines of text, in px.
const LINE: usize = 17;
/// Height of the row of numbers above the frames, in px.
const NUMBERS: usize = 24;
/// Smallest distance between two numbers, in px.
const APART: f64 = 18.0;
/// Room that inferno leaves on each side of the frames, in px.
const PAD: usize = 10;
/// Part of the height below the frames that only a script uses, in px.
const DETAILS: usize = 24;
/// Height below the frames of a still picture, in px.
const BELOW: usize = 12;

/// A box of a picture.
#[derive(Debug)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The frame's name.
    pub name: &'a str,
    /// The weight of everything to the left of it.
    pub from: u64,
    /// Its own weight, and that of everything above it.
    pub weight: u64,
    /// The weight of the whole picture.
    pub whole: u64,
}

/// A box with a number, and its place in px.
struct Numbered {
    mark: &'static str,
    x: f64,
    y: usize,
    width: f64,
    height: usize,
}

/// Parts that are added, and what is known of the picture so far.
pub(super) struct Additions<'a> {
    /// Lines below the title.
    captions: &'a [String],
    /// Lines below the frames.
    legend: &'a [String],
    is_still: bool,
    /// The height that is added above the frames.
    above: usize,
    width: usize,
    /// Height without the parts that are added.
    height: usize,
    whole: u64,
    numbered: Vec<Numbered>,
}

impl<'a> Additions<'a> {
    pub(super) fn of(captions: &'a [String], legend: &'a [String], form: Form) -> Self {
        Self {
            captions,
            legend,
            is_still: form == Form::Still,
            above: captions.len() * LINE,
            width: 0,
            height: 0,
            whole: 0,
            numbered: Vec::new(),
        }
    }

    /// Returns inferno's picture `svg` with the additions. `describe` returns the text that a picture with a script shows
    /// under the mouse, if it is not to be inferno's.
    pub(super) fn to(
        mut self,
        svg: &str,
        describe: impl Fn(&Frame<'_>) -> Option<String>,
    ) -> Result<String, Error> {
        if self.is_still && MARKS.iter().any(|mark| svg.contains(mark)) {
            self.above += NUMBERS;
        }
        let mut reader = Reader::from_str(svg);
        let mut writer = Writer::new(Vec::new());
        let mut about = String::new();
        let mut depth = 0;
        loop {
            let event = reader.read_event().map_err(Error::other)?;
            let event = match event {
                Event::Eof => return String::from_utf8(writer.into_inner()).map_err(Error::other),
                Event::Start(tag) if self.is_still && is_for_script(&tag) => {
                    reader.read_to_end(tag.name()).map_err(Error::other)?;
                    continue;
                }
                Event::Start(tag) if tag.name().as_ref() == b"title" => {
                    let text = reader.read_text(tag.name()).map_err(Error::other)?;
                    let text = text.decode().map_err(Error::other)?;
                    about = unescape(&text).map_err(Error::other)?.into_owned();
                    continue;
                }
                Event::Start(tag) => {
                    depth += 1;
                    Event::Start(self.placed(&tag)?)
                }
                Event::Empty(tag) if self.whole > 0 => {
                    let about = self.frame(&tag, &about, &describe)?;
                    write!(writer.get_mut(), "<title>{}</title>", escaped(about))?;
                    Event::Empty(tag)
                }
                Event::Empty(tag) => Event::Empty(self.placed(&tag)?),
                Event::CData(script) => {
                    let script = forgiving(&String::from_utf8_lossy(&script));
                    Event::CData(BytesCData::new(script))
                }
                Event::End(tag) => {
                    depth -= 1;
                    let added = match tag.name().as_ref() {
                        b"style" => self.style(),
                        b"svg" if depth == 0 => self.around(),
                        _ => String::new(),
                    };
                    writer.get_mut().write_all(added.as_bytes())?;
                    Event::End(tag)
                }
                other => other,
            };
            writer.write_event(event)?;
        }
    }

    /// Returns a tag of inferno's with room for the additions.
    fn placed(&mut self, tag: &BytesStart<'_>) -> Result<BytesStart<'static>, Error> {
        let id = text(tag, "id");
        let mut changes: Vec<(&str, String)> = Vec::new();
        match (tag.name().as_ref(), id.as_str()) {
            (b"svg", "frames") => {
                self.whole = number(tag, "total_samples")?;
                changes.push(("y", self.above.to_string()));
                if self.is_still {
                    // Cuts off the lowest box, which inferno adds. It says nothing that the title does not say.
                    changes.push(("height", (self.height - BELOW).to_string()));
                }
            }
            (b"svg", _) => {
                self.width = number(tag, "width")?;
                self.height = number(tag, "height")?;
                changes.push(("style", "color-scheme:light dark".to_owned()));
                if self.is_still {
                    self.height -= STILL_ROW + DETAILS;
                    changes.push(("onload", String::new()));
                    changes.push(("role", "img".to_owned()));
                }
                let height = self.full_height();
                changes.push(("height", height.to_string()));
                changes.push(("viewBox", format!("0 0 {} {height}", self.width)));
            }
            (b"rect", _) => changes.push(("height", self.full_height().to_string())),
            (_, "details" | "matched") => {
                let y = number::<f64>(tag, "y")? + self.above as f64;
                changes.push(("y", y.to_string()));
            }
            _ => {}
        }
        Ok(changed(tag, &changes))
    }

    fn full_height(&self) -> usize {
        let legend = match self.legend.len() {
            0 => 0,
            lines => lines * LINE + 4,
        };
        self.height + self.above + legend
    }

    /// Returns the description of the frame with this tag, and keeps its place if it has a number.
    fn frame(
        &mut self,
        tag: &BytesStart<'_>,
        about: &str,
        describe: impl Fn(&Frame<'_>) -> Option<String>,
    ) -> Result<String, Error> {
        let name = about.rsplit_once(" (").map_or(about, |(name, _)| name);
        if self.is_still
            && let Some(mark) = MARKS.into_iter().find(|mark| name.ends_with(mark))
        {
            let pixels = (self.width - 2 * PAD) as f64 / 100.0;
            self.numbered.push(Numbered {
                mark,
                x: PAD as f64 + number::<f64>(tag, "x")? * pixels,
                y: number::<usize>(tag, "y")? + self.above,
                width: number::<f64>(tag, "width")? * pixels,
                height: number(tag, "height")?,
            });
        }
        let frame = Frame {
            name,
            from: number(tag, "fg:x")?,
            weight: number(tag, "fg:w")?,
            whole: self.whole,
        };
        Ok(describe(&frame).unwrap_or_else(|| about.to_owned()))
    }

    /// Returns rules that follow inferno's own. The search button shows only under a mouse, which a phone does not have.
    fn style(&self) -> String {
        let mut rules =
            "#search { opacity:1; }\n.caption, .number { text-anchor:middle; }\n".to_owned();
        let mut dark = format!(
            "#background stop {{ stop-color:{DARK_PAPER}; }}\ntext {{ fill:{DARK_INK}; }}\n\
             #frames text {{ fill:#000; }}\n#frames rect {{ fill-opacity:0.85; }}\n"
        );
        if self.is_still {
            rules += "text { font-family:system-ui,sans-serif; }\n#frames rect { stroke:#fcfcfc; }\n\
                      .number { font-size:17px; fill:#b3261e; }\n\
                      .pointer { fill:none; stroke:#b3261e; stroke-width:1.5; }\n";
            let _ = write!(
                dark,
                "#frames rect {{ stroke:{DARK_PAPER}; }}\n.number {{ fill:#ff8a80; }}\n\
                 .pointer {{ stroke:#ff5449; }}\n"
            );
        }
        format!("{rules}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
    }

    /// Returns what is around the frames as SVG: the captions, the numbers and the legend.
    fn around(&mut self) -> String {
        let mut around = self.numbers();
        for (line, caption) in self.captions.iter().enumerate() {
            let y = 41 + line * LINE;
            // Writing to a String cannot fail.
            let _ = write!(
                around,
                "<text class=\"caption\" x=\"50%\" y=\"{y}\">{}</text>",
                escaped(caption)
            );
        }
        for (line, text) in (1..).zip(self.legend) {
            let y = self.height + self.above + line * LINE - 6;
            let _ = write!(
                around,
                "<text x=\"{PAD}\" y=\"{y}\">{}</text>",
                escaped(text)
            );
        }
        around
    }

    /// Returns the numbers in a row above the frames, with lines to their boxes. They come in the order of the boxes, so
    /// that no line crosses another.
    fn numbers(&mut self) -> String {
        self.numbered
            .sort_by(|one, other| one.x.total_cmp(&other.x));
        let row = self.above + 23;
        let last = self.numbered.len().saturating_sub(1);
        let mut left = 0.0_f64;
        let mut drawn = String::new();
        for (
            place,
            Numbered {
                mark,
                x,
                y,
                width,
                height,
            },
        ) in self.numbered.iter().enumerate()
        {
            let at = x + (width / 2.0).min(8.0);
            let right = (self.width - PAD) as f64 - (last - place) as f64 * APART;
            let number = at.max(left).min(right);
            left = number + APART;
            // Writing to a String cannot fail.
            let _ = write!(
                drawn,
                "<text class=\"number\" x=\"{number:.1}\" y=\"{row}\">{mark}</text>\
                 <path class=\"pointer\" d=\"M{number:.1} {}L{at:.1} {y}\"/>\
                 <rect class=\"pointer\" x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{height}\"/>",
                row + 4,
                width.max(0.8),
            );
        }
        drawn
    }
}

/// Makes inferno's script work in single-file reports, on phones, and in a busy browser.
///
/// The script keeps zoom and search in the page's address. A frame of a single-file report has no
/// address to change, and the browser's refusal would stop the script. A frame that a busy browser has
/// not laid out yet is 0 px wide, less the margins. Widths below 0 and divisions by 0 would be errors in its
/// console. Inferno fixes the width of a picture that has one, but this one is only for browsers without a script.
fn forgiving(script: &str) -> String {
    let guarded = script
        .replace("history.replaceState(", "remember(")
        .replace(
            "= svg.width.baseVal.value - xpad * 2;",
            "= Math.max(1, svg.width.baseVal.value - xpad * 2);",
        )
        .replace("var fluiddrawing = false;", "var fluiddrawing = true;");
    guarded.replacen(
        "\"use strict\";",
        "\"use strict\";\nfunction remember(a, b, c) { try { history.replaceState(a, b, c); } catch (refused) {} }",
        1,
    )
}

/// Returns whether an element is of no use without a script.
fn is_for_script(tag: &BytesStart<'_>) -> bool {
    let id = text(tag, "id");
    tag.name().as_ref() == b"script"
        || ["details", "matched", "search", "unzoom"].contains(&id.as_str())
}

/// Returns an attribute of a tag, empty if the tag lacks it.
fn text(tag: &BytesStart<'_>, name: &str) -> String {
    match tag.try_get_attribute(name) {
        Ok(Some(attribute)) => String::from_utf8_lossy(&attribute.value).into_owned(),
        _ => String::new(),
    }
}

/// Returns a number in an attribute, without its percent sign.
fn number<N: FromStr>(tag: &BytesStart<'_>, name: &str) -> Result<N, Error> {
    let text = text(tag, name);
    let number = text.trim_end_matches('%').parse();
    number.map_err(|_| {
        Error::other(format!(
            "inferno drew {name}=\"{text}\", which is no number"
        ))
    })
}

/// Returns a tag with other values of some attributes.
fn changed(tag: &BytesStart<'_>, values: &[(&str, String)]) -> BytesStart<'static> {
    let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
    let mut other = BytesStart::new(name);
    for attribute in tag.attributes().flatten() {
        let key = attribute.key.as_ref();
        if !values.iter().any(|(name, _)| name.as_bytes() == key) {
            other.push_attribute(attribute);
        }
    }
    for (name, value) in values {
        other.push_attribute((*name, value.as_str()));
    }
    other
}
