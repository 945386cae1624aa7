//! Call-outs of a flamegraph: two frames that matter and one that does not. Each is marked with its
//! number, and has a line below the picture.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use await_profile::drawing::MARKS;
use statistics::figures;

use crate::folded::{NoCount, stacks};

/// Smallest share of the first marked frame that the second one must have. It is most of the width, or a good part
/// if no frame above has most.
const SHARES: [f64; 2] = [0.5, 0.25];

/// Largest number of characters of a path that fit on a phone beside a share.
const LONG: usize = 34;

/// Smallest share of the picture that a frame must have to be marked as "not here".
const NARROW: f64 = 0.01;

/// Width of each frame, by its path from the bottom: `main;read` is `read` where `main` called it.
type Widths<'a> = BTreeMap<&'a str, u64>;

/// Stacks in which some frames are marked, and a line of text for each.
pub(super) struct Pointed {
    pub(super) folded: String,
    /// Lines such as `① here, 97 %: chapter1::read`.
    pub(super) legend: Vec<String>,
}

/// Marks the widest frame of the crate `own`, and the frame that most of its width goes to. The third mark is the
/// widest frame that has no part of that crate in it. `all` is the weight of the whole picture.
pub(super) fn point(folded: &str, own: &str, all: u64) -> Result<Pointed, NoCount> {
    let widths = widths(folded)?;
    let mut chosen = Vec::new();
    if let Some(widest) = widest_of(&widths, own) {
        chosen.push((widest, "here"));
        let most = most_of(&widths, widest);
        if most != widest {
            chosen.push((most, "here"));
        }
        let name = short(last(most));
        let others = widths.iter().filter(|(path, _)| {
            !is_related(path, widest) && !has_part_of(path, own) && short(last(path)) != name
        });
        if let Some((other, width)) =
            others.max_by_key(|(path, width)| (**width, Reverse(path.len())))
            && *width as f64 >= NARROW * all as f64
        {
            chosen.push((other, "not here"));
        }
    }
    let mut legend = Vec::new();
    for ((path, word), mark) in chosen.iter().zip(MARKS) {
        let share = widths[path] as f64 / all.max(1) as f64;
        // The share comes first, because a phone cuts long lines.
        let frame = short(last(path));
        legend.push(format!(
            "{mark} {word}, {}: {frame}",
            figures::percent(share)
        ));
    }
    let paths: Vec<&str> = chosen.iter().map(|(path, _)| *path).collect();
    Ok(Pointed {
        legend,
        folded: marked(folded, &paths)?,
    })
}

/// Marks the widest frame whose name begins with each text in `beginnings`.
pub(super) fn point_at(folded: &str, beginnings: &[&str]) -> Result<Pointed, NoCount> {
    let widths = widths(folded)?;
    let mut paths = Vec::new();
    for beginning in beginnings {
        let named = widths
            .iter()
            .filter(|(path, _)| last(path).starts_with(beginning));
        let widest = named.max_by_key(|(path, width)| (**width, Reverse(**path)));
        paths.extend(widest.map(|(path, _)| *path));
    }
    let legend = paths.iter().zip(MARKS);
    Ok(Pointed {
        legend: legend
            .map(|(path, mark)| format!("{mark} {}", last(path)))
            .collect(),
        folded: marked(folded, &paths)?,
    })
}

/// Returns the stacks with the marks, in their order, behind the frames at the ends of `paths`: behind, because the drawing
/// cuts long names at their beginning.
fn marked(folded: &str, paths: &[&str]) -> Result<String, NoCount> {
    let mut text = String::new();
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        let mut marked = String::new();
        let mut end = 0;
        for frame in frames.split(';') {
            end += frame.len();
            let separator = if marked.is_empty() { "" } else { ";" };
            marked.push_str(separator);
            marked.push_str(frame);
            let place = paths.iter().position(|path| *path == &frames[..end]);
            if let Some(mark) = place.and_then(|place| MARKS.get(place)) {
                marked.push(' ');
                marked.push_str(mark);
            }
            end += 1;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{marked} {count}");
    }
    Ok(text)
}

fn widths(folded: &str) -> Result<Widths<'_>, NoCount> {
    let mut widths = Widths::new();
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        let ends = frames.match_indices(';').map(|(end, _)| end);
        for end in ends.chain([frames.len()]) {
            *widths.entry(&frames[..end]).or_default() += count;
        }
    }
    Ok(widths)
}

/// Returns the widest frame of a crate. Among frames of nearly the same width it is the highest: a handler, and not
/// the function that started its thread.
fn widest_of<'a>(widths: &Widths<'a>, own: &str) -> Option<&'a str> {
    let mut most = 0;
    for (path, width) in widths {
        if is_of(last(path), own) {
            most = most.max(*width);
        }
    }
    let mut highest = None;
    for (path, width) in widths {
        if is_of(last(path), own) && *width as f64 >= 0.95 * most as f64 {
            highest = highest.max(Some((depth(path), *width, *path)));
        }
    }
    let (_, _, path) = highest?;
    Some(path)
}

/// Returns whether a frame of a path is of the crate `own`. The main thread has the crate's name.
fn has_part_of(path: &str, own: &str) -> bool {
    path.split(';')
        .any(|frame| frame == own || is_of(frame, own))
}

/// Returns whether a frame is of the crate `own`.
fn is_of(frame: &str, own: &str) -> bool {
    match frame.trim_start_matches(['<', '&']).strip_prefix(own) {
        Some(rest) => rest.starts_with("::"),
        None => false,
    }
}

/// Returns the highest frame above `from` that has most of its width, or a good part of it.
fn most_of<'a>(widths: &Widths<'a>, from: &'a str) -> &'a str {
    for share in SHARES {
        let least = share * widths[from] as f64;
        let above = widths
            .iter()
            .filter(|(path, width)| is_above(path, from) && **width as f64 >= least);
        if let Some((path, _)) = above.max_by_key(|(path, width)| (depth(path), **width)) {
            return path;
        }
    }
    from
}

/// Returns whether one of two frames lies above the other, or both are the same.
fn is_related(one: &str, other: &str) -> bool {
    one == other || is_above(one, other) || is_above(other, one)
}

fn is_above(high: &str, low: &str) -> bool {
    match high.strip_prefix(low) {
        Some(rest) => rest.starts_with(';'),
        None => false,
    }
}

fn last(path: &str) -> &str {
    path.rsplit(';').next().unwrap_or(path)
}

fn depth(path: &str) -> usize {
    path.matches(';').count()
}

/// Returns a name that a phone has room for, without closures, parameters and the place in the code. Of a long path
/// it keeps the last two parts, or the last one if these are long.
pub(super) fn short(frame: &str) -> String {
    let frame = frame
        .replace("::{{closure}}", "")
        .replace("::{closure#0}", "");
    let frame = frame.split(" (src/").next().unwrap_or(&frame);
    if frame.contains(' ') && !frame.starts_with('<') {
        return frame.to_owned();
    }
    let mut plain = String::new();
    let mut depth = 0_u32;
    let mut name = frame.to_owned();
    if let Some(rest) = frame.strip_prefix('<')
        && let Some((of_type, method)) = rest.rsplit_once(">::")
    {
        let (of_type, _) = of_type.split_once(" as ").unwrap_or((of_type, ""));
        name = format!("{of_type}::{method}");
    }
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let plain = plain.trim_end_matches(':').to_owned();
    if plain.len() <= LONG {
        return plain;
    }
    let parts: Vec<&str> = plain.split("::").filter(|part| !part.is_empty()).collect();
    let last_two = parts[parts.len().saturating_sub(2)..].join("::");
    if last_two.len() <= LONG {
        return last_two;
    }
    parts.last().copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_enough_for_a_phone() {
        for (frame, is) in [
            ("app::read (src/problem.rs:26)", "app::read"),
            ("app::problem::io::{{closure}}", "app::problem::io"),
            (
                "<alloc::vec::Vec<T> as b::Clone>::clone",
                "alloc::vec::Vec::clone",
            ),
            (
                "a_long_name::of_a_module::in_a_crate::Type::method",
                "Type::method",
            ),
            (
                "a_long_name::of_a_function_in_a_module",
                "of_a_function_in_a_module",
            ),
            ("<u64>::from_ascii_radix", "u64::from_ascii_radix"),
            (
                "(ready: woken and not yet polled)",
                "(ready: woken and not yet polled)",
            ),
            ("tokio, hyper", "tokio, hyper"),
        ] {
            assert_eq!(short(frame), is);
        }
    }
}
