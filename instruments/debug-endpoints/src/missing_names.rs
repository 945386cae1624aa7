//! Notes on profiles without names or lines, as of a program that is stripped, or whose file was replaced.

use await_profile::{Frames, Profile};

/// Note if nobody can read the names from the program's file.
pub(crate) const REPLACED: &str = "the program's file was replaced or removed after it began, so its functions have no names or \
    lines here. Start the program again, and leave its file where it is until it ends.";

/// Note of an await profile in which no frame has a line, as in a build that has none.
const WITHOUT_LINES: &str = "no line of this program's own code is in this profile: unless requests wait in libraries \
    alone, it has no debug information. Set debug = \"limited\" and strip = \"none\" in its Cargo profile.";

/// Returns whether the program's file was replaced or removed since it began.
pub(crate) fn is_replaced() -> bool {
    // Linux adds this to the path of such a file.
    let program = std::env::current_exe().unwrap_or_default();
    program.to_string_lossy().ends_with(" (deleted)")
}

/// Returns the note on an await profile that has no line of the program's own code.
pub(crate) fn in_waits(profile: &Profile) -> Option<&'static str> {
    in_stacks(&profile.folded(Frames::Own), is_replaced())
}

fn in_stacks(folded: &str, is_replaced: bool) -> Option<&'static str> {
    if folded.is_empty() || has_lines(folded) {
        return None;
    }
    Some(if is_replaced { REPLACED } else { WITHOUT_LINES })
}

/// Returns whether any frame of folded stacks ends with a line, such as `read (src/main.rs:14)`.
fn has_lines(folded: &str) -> bool {
    for line in folded.lines() {
        let (stack, _) = line.rsplit_once(' ').unwrap_or((line, ""));
        for frame in stack.split(';') {
            let place = frame.strip_suffix(')').unwrap_or_default();
            let number = place
                .rsplit_once(':')
                .map(|(_, number)| number.parse::<u32>());
            if let Some(Ok(_)) = number {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_a_line_are_told_from_those_without() {
        assert!(has_lines(
            "GET /;shop::read (src/main.rs:14);Mutex::lock 20\n"
        ));
        assert!(has_lines("GET /;shop::read (src/main.rs:14) 20\n"));
        assert!(!has_lines(
            "POST /;F::call;tokio::sync::oneshot::Receiver (waiting) 4\nGET /a:1;b 2\n"
        ));
    }

    #[test]
    fn stacks_without_lines_are_told_with_the_reason() {
        let with_a_line = "GET /a;shop::read (src/main.rs:14);tokio::time::Sleep 7\n";
        let without = "GET /a;0x55d4a3ec33f4 7\n";
        assert_eq!(in_stacks(with_a_line, true), None);
        assert_eq!(in_stacks("", false), None);
        assert_eq!(in_stacks(without, false), Some(WITHOUT_LINES));
        assert_eq!(in_stacks(without, true), Some(REPLACED));
    }

    #[test]
    fn the_file_of_this_program_is_there() {
        assert!(!is_replaced());
    }
}
