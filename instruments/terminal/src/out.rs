//! Standard output and standard error. They may be a full disk, or a pipe that nobody reads any more. The standard
//! library's macros would then panic in the middle of a command.
//!
//! Some of the printed text comes from servers, and terminals obey control characters: they can set a title, hide
//! text, or write to the clipboard. Other characters hide text or turn its direction. Of all these only line ends, tabs and
//! colours pass.

use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use ecosystem::printable;

/// Begin of a terminal's commands, among them colours.
const ESCAPE: &str = "\x1b[";

static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints on standard output, without colours unless this is a terminal that wants them.
pub fn put(text: Arguments<'_>) {
    let text = text.to_string();
    note(anstream::stdout().write_all(harmless(&text).as_bytes()));
}

/// Prints on standard error.
pub fn tell(text: Arguments<'_>) {
    let text = text.to_string();
    // If standard error fails, there is no other place to report it.
    let _ = anstream::stderr().write_all(harmless(&text).as_bytes());
}

/// Meaning of a verdict, which gives it its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Green.
    Good,
    /// Red.
    Bad,
    /// Yellow.
    Unsure,
}

/// Returns a verdict in bold letters and its colour. [`put`] and [`tell`] leave colours out where nothing shows them, and if
/// `NO_COLOR` is set.
pub fn coloured(verdict: &dyn Display, tone: Tone) -> String {
    let colour = match tone {
        Tone::Good => 32,
        Tone::Bad => 31,
        Tone::Unsure => 33,
    };
    format!("{ESCAPE}1;{colour}m{verdict}{ESCAPE}0m")
}

/// Returns `text` with its colours as they are, and everything else through [`printable`].
fn harmless(text: &str) -> String {
    let mut pieces = text.split(ESCAPE);
    let mut safe = printable(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (colour, rest) = piece.split_at(colour(piece).unwrap_or(0));
        if colour.is_empty() {
            safe += &printable(ESCAPE);
        } else {
            safe += ESCAPE;
        }
        safe += colour;
        safe += &printable(rest);
    }
    safe
}

/// Returns the length of the colour or style that `text` begins with, after its [`ESCAPE`]: `1;31m`.
fn colour(text: &str) -> Option<usize> {
    let (numbers, _) = text.split_once('m')?;
    if !numbers.bytes().all(|b| b.is_ascii_digit() || b == b';') {
        return None;
    }
    Some(numbers.len() + "m".len())
}

fn note(written: io::Result<()>) {
    // A reader that has seen enough (`| head`) is no failure.
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Returns the error that lost some of standard output, if there was one.
pub fn lost() -> Option<&'static io::Error> {
    note(io::stdout().flush());
    LOST.get()
}

#[doc(hidden)]
#[macro_export]
macro_rules! print {
    ($($words:tt)*) => { $crate::put(format_args!($($words)*)) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => {{
        $crate::print!($($words)*);
        $crate::print!("\n");
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::tell(format_args!("{}\n", format_args!($($words)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_lines_and_colours_and_no_commands() {
        for (text, expected) in [
            ("plain, ✓\n\tindented\n", "plain, ✓\n\tindented\n"),
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("of Windows\r\n", "of Windows\n"),
            ("\x1b]52;c;ZXZpbA==\x07", "\\u001b]52;c;ZXZpbA==\\u0007"),
            (
                "\x1b[2Jgone\x1b[1mbold\rover",
                "\\u001b[2Jgone\x1b[1mbold\\u000dover",
            ),
            ("\x1b[31", "\\u001b[31"),
            ("\u{9b}2J", "\\u009b2J"),
            ("safe\u{202e}live", "safe\\u202elive"),
            ("zero\u{200b}width", "zero\\u200bwidth"),
        ] {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }
}
