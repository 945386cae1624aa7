//! Folded stacks: lines of `frame;frame;frame count`.

pub use await_profile::drawing::IDLE;
use std::fmt::Write as _;

/// Number of CPU samples below which shares of functions are chance. Of 300 samples, a share of 10 % is known to within
/// 3.5 points.
pub const MEANINGFUL: u64 = 300;

/// Largest sum of counts: more than any instrument takes, and exact as `f64`.
const MOST: u64 = 1 << 53;

/// Error for a line of folded stacks without a count at its end, or with one that makes the sum more than
/// 9,007,199,254,740,992.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the folded stacks has no sample count at its end, or one that nothing can have \
     counted: {text:?}; take the profile again."
)]
pub struct NoCount {
    /// The line, counted from 1.
    pub line: usize,
    /// Text of the line, shortened.
    pub text: String,
}

/// Returns the sum of the counts of folded stacks.
///
/// # Errors
///
/// Returns an error if a line has no count.
pub fn total(folded: &str) -> Result<u64, NoCount> {
    let mut sum = 0;
    for stack in stacks(folded) {
        sum += stack?.1;
    }
    Ok(sum)
}

/// Returns the share (0 to 1) of samples whose stack has a frame that contains one of `parts`; `None` without a sample.
///
/// # Errors
///
/// Returns an error if a line has no count.
pub fn share_with(folded: &str, parts: &[impl AsRef<str>]) -> Result<Option<f64>, NoCount> {
    let (mut with, mut all) = (0_u64, 0_u64);
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        all += count;
        if frames.split(';').any(|frame| contains_any(frame, parts)) {
            with += count;
        }
    }
    if all == 0 {
        return Ok(None);
    }
    Ok(Some(with as f64 / all as f64))
}

fn contains_any(frame: &str, parts: &[impl AsRef<str>]) -> bool {
    parts.iter().any(|part| frame.contains(part.as_ref()))
}

/// Returns the frame in which most stacks end, with its share (0 to 1) of the samples.
///
/// # Errors
///
/// Returns an error if a line has no count.
pub fn most_frequent_leaf(folded: &str) -> Result<Option<(String, f64)>, NoCount> {
    let mut leaves = std::collections::BTreeMap::<&str, u64>::new();
    let mut all = 0_u64;
    for stack in stacks(folded) {
        let (frames, count) = stack?;
        let leaf = frames.rsplit(';').next().unwrap_or(frames);
        *leaves.entry(leaf).or_default() += count;
        all += count;
    }
    match leaves.into_iter().max_by_key(|(_, count)| *count) {
        Some((leaf, count)) if all > 0 => Ok(Some((leaf.to_owned(), count as f64 / all as f64))),
        _ => Ok(None),
    }
}

/// Merges the stacks of several texts, so that each stack appears once.
///
/// # Errors
///
/// Returns an error if a line has no count.
pub fn merged(parts: &[String]) -> Result<String, NoCount> {
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    for part in parts {
        for stack in stacks(part) {
            let (frames, count) = stack?;
            *counts.entry(frames).or_default() += count;
        }
    }
    let mut merged = String::new();
    for (frames, count) in counts {
        let _ = writeln!(merged, "{frames} {count}");
    }
    Ok(merged)
}

/// Returns folded stacks without the samples of CPUs that had nothing to do, and the number of these.
pub fn without_idle(folded: &str) -> (String, u64) {
    let (mut busy, mut idle) = (String::new(), 0_u64);
    for line in folded.split_inclusive('\n') {
        match line.strip_prefix(IDLE).unwrap_or_default().trim().parse() {
            Ok(count) => idle = idle.saturating_add(count),
            Err(_) => busy += line,
        }
    }
    (busy, idle)
}

/// Returns each stack with its count. Their sum fits into `u64` and is exact as `f64`.
///
/// # Errors
///
/// Returns an error if a line has no count.
pub fn stacks(folded: &str) -> impl Iterator<Item = Result<(&str, u64), NoCount>> {
    let mut left = MOST;
    let lines = folded.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(move |(index, line)| {
            stack(line, &mut left).ok_or(NoCount {
                line: index + 1,
                text: line.chars().take(60).collect(),
            })
        })
}

/// Returns the stack of a line and its count, which is taken from what is `left`.
fn stack<'f>(line: &'f str, left: &mut u64) -> Option<(&'f str, u64)> {
    let (frames, count) = line.trim_end().rsplit_once(' ')?;
    let count = count.parse().ok()?;
    *left = left.checked_sub(count)?;
    Some((frames, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_kept_apart_from_the_stacks() {
        let (stacks, idle) = without_idle("[idle] 290\nmain;work 7\nmain;rest 3\n");
        assert_eq!(idle, 290);
        assert_eq!(stacks, "main;work 7\nmain;rest 3\n");
    }
}
