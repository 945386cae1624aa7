//! Where to look in a flamegraph: two frames that matter and one that does not, each marked with its
//! number, and a line for each below the picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::figures;
use engine::folded::{NoCount, stacks};

/// Behind the names of the frames that are pointed at: the drawing cuts long names at their beginning.
const MARKS: [&str; 3] = ["①", "②", "③"];

/// What has such a share of the frame that is pointed at is what that goes to: most of it, or a good
/// part where nothing has most.
const SHARES: [f64; 2] = [0.5, 0.25];

/// More characters of a path than these do not fit a phone beside a share.
const LONG: usize = 34;

/// What is too narrow to be taken for the answer.
const NARROW: f64 = 0.01;

/// A frame by what lies below it: `main;read` is `read` where `main` called it.
type Widths<'a> = BTreeMap<&'a str, u64>;

/// Stacks in which some frames are marked, and what is said of each.
pub(super) struct Pointed {
    pub(super) folded: String,
    /// `① here, 97 %: chapter1::read`.
    pub(super) legend: Vec<String>,
}

/// Points at the widest frame of the crate `own`, at what most of it goes to, and at the widest frame
/// that has no part of that crate in it. `all` is the weight of the whole picture.
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
        let other = widths.iter().filter(|(path, _)| {
            // The main thread has the crate's name.
            let is_own = |frame: &str| frame == own || is_of(frame, own);
            !is_related(path, widest) && !path.split(';').any(is_own) && short(last(path)) != name
        });
        let other = other.max_by_key(|(path, width)| (**width, std::cmp::Reverse(path.len())));
        if let Some((other, width)) = other
            && *width as f64 >= NARROW * all as f64
        {
            chosen.push((other, "not here"));
        }
    }
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
            let place = chosen.iter().position(|(path, _)| *path == &frames[..end]);
            if let Some(place) = place {
                marked.push(' ');
                marked.push_str(MARKS[place]);
            }
            end += 1;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{marked} {count}");
    }
    let legend = chosen.iter().zip(MARKS).map(|((path, word), mark)| {
        let share = widths[path] as f64 / all.max(1) as f64;
        // The share first: a phone cuts what is long.
        let frame = short(last(path));
        format!("{mark} {word}, {}: {frame}", figures::percent(share))
    });
    Ok(Pointed {
        legend: legend.collect(),
        folded: text,
    })
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

/// The widest frame of a crate. Of equal ones it is the one above the others: a handler, not what
/// started the thread that it runs on.
fn widest_of<'a>(widths: &Widths<'a>, own: &str) -> Option<&'a str> {
    let own = widths.iter().filter(|(path, _)| is_of(last(path), own));
    let widest = own.clone().map(|(_, width)| *width).max()?;
    own.filter(|(_, width)| **width as f64 >= 0.95 * widest as f64)
        .max_by_key(|(path, width)| (depth(path), **width))
        .map(|(path, _)| *path)
}

/// Whether a frame is of a crate.
fn is_of(frame: &str, own: &str) -> bool {
    let name = frame.trim_start_matches(['<', '&']).strip_prefix(own);
    name.is_some_and(|rest| rest.starts_with("::"))
}

/// The highest frame above another that has most of its width.
fn most_of<'a>(widths: &Widths<'a>, from: &'a str) -> &'a str {
    let above = |least: f64| {
        let above = widths.iter().filter(move |(path, width)| {
            let rest = path.strip_prefix(from);
            rest.is_some_and(|rest| rest.starts_with(';')) && **width as f64 >= least
        });
        above.max_by_key(|(path, width)| (depth(path), **width))
    };
    let most = SHARES
        .iter()
        .find_map(|share| above(share * widths[from] as f64));
    most.map_or(from, |(path, _)| *path)
}

/// Whether one of two frames lies above the other.
fn is_related(one: &str, other: &str) -> bool {
    let above = |low: &str, high: &str| {
        high.strip_prefix(low)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(';'))
    };
    above(one, other) || above(other, one)
}

fn last(path: &str) -> &str {
    path.rsplit(';').next().unwrap_or(path)
}

fn depth(path: &str) -> usize {
    path.matches(';').count()
}

/// A name that a phone has room for: without closures, parameters and the place in the code, and of
/// its path the last two parts, or the last one if they are long.
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
    let inner = frame.strip_prefix('<').and_then(|rest| {
        let (of_type, method) = rest.rsplit_once(">::")?;
        let of_type = of_type.split(" as ").next().unwrap_or(of_type);
        Some(format!("{of_type}::{method}"))
    });
    for c in inner.as_deref().unwrap_or(frame).chars() {
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
    let last = |count: usize| parts[parts.len().saturating_sub(count)..].join("::");
    let last_two = last(2);
    if last_two.len() <= LONG {
        last_two
    } else {
        last(1)
    }
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
