//! Standard output and standard error. They may be a full disk, or a pipe that nobody reads any more. The standard
//! library's macros would then panic in the middle of a command.
//!
//! Some of the printed text comes from servers, and terminals obey control characters: they can set a title, hide
//! text, or write to the clipboard. Only line ends, tabs and colours pass.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

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

/// Returns `text` with a visible sign in place of each control character that could do more than end a line, indent,
/// or choose a colour.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = colour(rest).unwrap_or(c.len_utf8());
        let (piece, after) = rest.split_at(taken);
        match c {
            '\r' if after.starts_with('\n') => {}
            _ if taken == c.len_utf8() && is_harmful(c) => {
                harmless.push(char::REPLACEMENT_CHARACTER);
            }
            _ => harmless += piece,
        }
        rest = after;
    }
    Cow::Owned(harmless)
}

/// Returns the length of the colour or style that `text` begins with: `ESC [ 1 ; 31 m`.
fn colour(text: &str) -> Option<usize> {
    let (numbers, _) = text.strip_prefix("\x1b[")?.split_once('m')?;
    let is_one = numbers.bytes().all(|b| b.is_ascii_digit() || b == b';');
    is_one.then_some("\x1b[m".len() + numbers.len())
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
            ("\x1b]52;c;ZXZpbA==\x07", "\u{fffd}]52;c;ZXZpbA==\u{fffd}"),
            ("\x1b[2Jgone\rover", "\u{fffd}[2Jgone\u{fffd}over"),
            ("\x1b[31", "\u{fffd}[31"),
            ("\u{9b}2J", "\u{fffd}2J"),
        ] {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }
}
