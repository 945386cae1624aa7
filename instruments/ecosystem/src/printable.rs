//! Names and texts of others, made safe for a terminal.

use std::fmt::Write as _;

/// Returns `text` with every character escaped that a terminal obeys or shows nothing for. Line ends and tabs stay; a
/// line end of Windows becomes one of Unix.
///
/// The escapes are those of JSON, such as `\u001b`. So JSON that goes through this still means the same.
///
/// A server can send text that clears the screen, sets the clipboard, reverses the direction of writing, or hides other
/// text. All text from a server, or from a program that was started, goes through this before it is printed.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\r' && characters.peek() == Some(&'\n') {
            continue;
        }
        if matches!(character, '\n' | '\t') || !is_unsafe(character) {
            safe.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing into a string cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        }
    }
    safe
}

/// Returns `text` as a part of an HTML or SVG file, in an element or in the quotes of an attribute: [`printable`], with the
/// special characters of both escaped.
pub fn escaped(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Returns whether a terminal obeys `character`, or shows nothing for it.
///
/// These are Unicode's control and format characters (general categories Cc, Cf, Zl and Zp), and the two numbers without a
/// character that XML forbids, but not the two joiners, U+200C and U+200D: Persian words and many emoji need them. Marks
/// that belong to one script and are visible there, such as U+0600, are no danger.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' // soft hyphen
                | '\u{61c}' | '\u{200e}' | '\u{200f}' // marks of direction
                | '\u{180e}' | '\u{200b}' | '\u{feff}' // spaces without width
                | '\u{2028}' | '\u{2029}' // ends of lines and paragraphs
                | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' // turns of direction
                | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' // invisible operators and old shaping marks
                | '\u{fff9}'..='\u{fffb}' // annotations
                | '\u{fffe}' | '\u{ffff}' // no characters
                | '\u{e0000}'..='\u{e007f}' // tags: a whole alphabet that nobody sees
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_would_obey_are_shown_and_the_rest_stays() {
        let clipboard = "a\u{1b}]52;c;bHM=\u{7}b\r\u{9b}2J";
        assert_eq!(
            printable(clipboard),
            "a\\u001b]52;c;bHM=\\u0007b\\u000d\\u009b2J"
        );
        let plain = "1. müde, 40 µs\n\tat `main`, می\u{200c}خواهم, 👩\u{200d}💻";
        assert_eq!(printable(plain), plain);
        assert_eq!(printable("of Windows\r\n"), "of Windows\n");
    }

    #[test]
    fn characters_that_turn_or_hide_text_are_shown() {
        for (text, shown) in [
            ("co\u{ad}op", "co\\u00adop"),
            ("\u{61c}a", "\\u061ca"),
            ("pay\u{200b}pal", "pay\\u200bpal"),
            ("\u{200e}\u{2028}\u{202e}", "\\u200e\\u2028\\u202e"),
            ("\u{2060}\u{2067}", "\\u2060\\u2067"),
            ("\u{feff}\u{fff9}", "\\ufeff\\ufff9"),
            ("a\u{e0041}b", "a\\udb40\\udc41b"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn text_cannot_leave_its_place_in_a_page_or_a_picture() {
        assert_eq!(
            escaped("<a href=\"x\">&\u{1b}[2J\u{ffff}\n"),
            "&lt;a href=&quot;x&quot;&gt;&amp;\\u001b[2J\\uffff\n"
        );
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let route = "GET /a\u{202e}b\\\u{9b}\u{e0041}";
        let json = serde_json::to_string(route).unwrap();
        let printed = printable(&json);
        assert!(printed.is_ascii(), "{printed}");
        assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), route);
    }
}
