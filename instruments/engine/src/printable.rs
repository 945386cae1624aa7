//! Text of others, made safe for a terminal.

use std::fmt::Write as _;

/// Returns `text` with its control characters escaped, such as `\u{1b}`, so that a terminal shows them and obeys none.
/// Lines and tabs stay.
///
/// A server can send text that clears the screen, sets the clipboard or hides other text. All text from a server, or
/// from a program that was started, goes through this before it is printed.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\n' | '\t') || !is_obeyed(character) {
            safe.push(character);
        } else {
            // Into a string, which cannot fail.
            let _ = write!(safe, "{}", character.escape_unicode());
        }
    }
    safe
}

/// Returns whether a terminal does anything but show it, such as turning the direction of writing.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_the_rest_stays() {
        let clipboard = "a\u{1b}]52;c;bHM=\u{7}b\r\u{9b}2J\u{202e}";
        assert_eq!(
            printable(clipboard),
            "a\\u{1b}]52;c;bHM=\\u{7}b\\u{d}\\u{9b}2J\\u{202e}"
        );
        let plain = "1. müde, 40 µs\n\tat `main`";
        assert_eq!(printable(plain), plain);
    }
}
