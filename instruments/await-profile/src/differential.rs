//! Pictures of the change between two profiles.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::drawing::Drawing;
use crate::error::FlamegraphError;

/// Draws the profile `after`. Frames that grew since `before` are red, and those that shrank
/// are blue. Both are folded stacks, as [`Profile::folded`] writes them, so that you can keep
/// profiles and compare them later.
///
/// Both are first scaled to shares of the requests in flight. The picture does not compare the
/// number of requests in flight or the duration of sampling. It leaves out lines in files, since an
/// edit above a function would otherwise make it another function.
///
/// Stacks that only `before` has are not in the picture. To see them, also draw the difference the
/// other way round.
///
/// [`Profile::folded`]: crate::Profile::folded
///
/// # Errors
///
/// Returns an error if both are empty, or if inferno cannot read or draw them.
pub fn differential(title: &str, before: &str, after: &str) -> Result<String, FlamegraphError> {
    if before.trim().is_empty() && after.trim().is_empty() {
        return Err(FlamegraphError::Empty);
    }
    let drawing = Drawing {
        title: title.to_owned(),
        captions: vec![
            "width: share of requests in flight after | red: a larger share than before | blue: a smaller one"
                .to_owned(),
        ],
        // Per cent would be rounded to whole numbers, and so would the share that inferno computes from them.
        unit: "in a million requests in flight".to_owned(),
        ..Drawing::default()
    };
    drawing.draw_difference(&shares(before), &shares(after))
}

/// Sum of all stacks after scaling.
const SCALE: f64 = 1e6;

fn shares(folded: &str) -> String {
    let mut stacks: BTreeMap<String, f64> = BTreeMap::new();
    for line in folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let frames: Vec<&str> = stack.split(';').map(without_place).collect();
        *stacks.entry(frames.join(";")).or_default() += count.parse::<f64>().unwrap_or(0.0);
    }
    let total: f64 = stacks.values().sum();
    let mut scaled = String::new();
    for (stack, count) in stacks {
        let _ = writeln!(scaled, "{stack} {:.0}", count / total * SCALE);
    }
    scaled
}

/// Returns the name of a frame without its place: `read` for `read (src/main.rs:12)`.
fn without_place(frame: &str) -> &str {
    match frame.rsplit_once(" (") {
        Some((name, place)) if is_place(place) => name,
        _ => frame,
    }
}

fn is_place(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((_, line)) => match line.strip_suffix(')') {
            Some(line) => !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()),
            None => false,
        },
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_compared_by_function_and_share() {
        let scaled = shares(
            "GET /;app::read (src/main.rs:12);lock 30\nGET /;app::read (src/main.rs:14);lock 30\n(ready) 40\n",
        );
        assert_eq!(scaled, "(ready) 400000\nGET /;app::read;lock 600000\n");
    }

    #[test]
    fn a_difference_of_nothing_is_an_error() {
        assert!(matches!(
            differential("", "", "\n"),
            Err(FlamegraphError::Empty)
        ));
    }
}
