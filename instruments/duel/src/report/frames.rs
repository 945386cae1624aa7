//! Functions whose share of the stacks differs between the base and the change.

use std::collections::{BTreeMap, BTreeSet};

use await_profile::drawing::legible;
use ecosystem::{crate_of, place_of};
use engine::folded::{MEANINGFUL, stacks, total, without_idle};
use engine::metric::SeenByBoth;
use engine::profile::ProfileKind;
use engine::statistics::student;

/// Probability in each tail of an interval. It is small because many frames are compared.
const TAIL: f64 = 0.005;
/// Difference below which two shares count as equal.
const ALIKE: f64 = 0.01;
/// Largest number of frames that are reported.
const MOST: usize = 3;

/// A function whose share of the stacks differs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    /// The instrument.
    pub kind: ProfileKind,
    /// Its name.
    pub name: String,
    /// Share (0 to 1) of the base's stacks that have it.
    pub base: f64,
    /// Share (0 to 1) of the change's stacks that have it.
    pub change: f64,
    /// Interval of the difference, from the spread of the shares over the parts of the time.
    pub interval: (f64, f64),
}

impl Frame {
    fn size(&self) -> f64 {
        (self.change - self.base).abs()
    }

    /// Returns whether the frame belongs to the service or a library, not to the runtime, a framework or the system.
    fn is_own(&self) -> bool {
        self.name.contains("::") && place_of(crate_of(&self.name)).is_none()
    }
}

/// Returns the frames whose share differs most, with the service's own code and its libraries first. A frame
/// that merely calls another of them is left out.
pub(super) fn changed(seen: &SeenByBoth) -> Vec<Frame> {
    let sides = [&seen.base, &seen.change].map(|parts| shares(seen.kind, parts));
    let [Some(base), Some(change)] = sides else {
        return Vec::new();
    };
    let names: BTreeSet<&String> = base.keys().chain(change.keys()).collect();
    let mut frames: Vec<(usize, Frame)> = Vec::new();
    for name in names {
        let of = |side: &BTreeMap<String, Seen>, other: &BTreeMap<String, Seen>| {
            // A side that never has the frame has a share of 0 in as many parts as the other side has it.
            let parts = other.get(name).map_or(0, |seen| seen.shares.len());
            let none = Seen {
                shares: vec![0.0; parts],
                depth: 0,
            };
            side.get(name).cloned().unwrap_or(none)
        };
        let (base, change) = (of(&base, &change), of(&change, &base));
        let depth = base.depth.max(change.depth);
        if let Some(frame) = frame(seen.kind, name, &base.shares, &change.shares) {
            frames.push((depth, frame));
        }
    }
    // If a function and its caller have the same share, the function comes first.
    let key =
        |(depth, frame): &(usize, Frame)| (frame.is_own(), (frame.size() / ALIKE).round(), *depth);
    frames.sort_by(|a, b| {
        key(b)
            .partial_cmp(&key(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut told: Vec<Frame> = Vec::new();
    for (_, frame) in frames {
        let is_near = |a: f64, b: f64| (a - b).abs() < ALIKE;
        let is_alike =
            |one: &Frame| is_near(one.base, frame.base) && is_near(one.change, frame.change);
        if told.len() < MOST && !told.iter().any(is_alike) {
            told.push(frame);
        }
    }
    told
}

/// Share of a frame in each part of the time, and its largest depth in a stack.
#[derive(Debug, Clone, Default)]
struct Seen {
    shares: Vec<f64>,
    depth: usize,
}

/// Returns the shares of all frames; `None` if there are too few samples or parts.
fn shares(kind: ProfileKind, parts: &[String]) -> Option<BTreeMap<String, Seen>> {
    let busy: Vec<String> = parts
        .iter()
        .map(|part| legible(&without_idle(part).0))
        .collect();
    let totals: Option<Vec<u64>> = busy.iter().map(|part| total(part).ok()).collect();
    let totals = totals?;
    // Await profiles count microseconds, not samples.
    let is_few = kind != ProfileKind::Await && totals.iter().sum::<u64>() < MEANINGFUL;
    if is_few || totals.len() < 3 || totals.contains(&0) {
        return None;
    }
    let mut all: BTreeMap<String, Seen> = BTreeMap::new();
    for (at, (part, total)) in busy.iter().zip(&totals).enumerate() {
        for (frames, count) in stacks(part).flatten() {
            let mut names = BTreeMap::new();
            names.extend(
                frames
                    .split(';')
                    .enumerate()
                    .map(|(depth, name)| (name, depth)),
            );
            for (name, depth) in names {
                let seen = all.entry(name.to_owned()).or_default();
                seen.shares.resize(totals.len(), 0.0);
                seen.shares[at] += count as f64 / *total as f64;
                seen.depth = seen.depth.max(depth);
            }
        }
    }
    Some(all)
}

/// Returns the frame if its shares differ beyond doubt, and `None` otherwise.
fn frame(kind: ProfileKind, name: &str, base: &[f64], change: &[f64]) -> Option<Frame> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let error = |values: &[f64]| {
        let squares = values.iter().map(|value| (value - mean(values)).powi(2));
        squares.sum::<f64>() / (values.len() - 1) as f64 / values.len() as f64
    };
    let (of_base, of_change) = (mean(base), mean(change));
    // The smaller number is on the safe side.
    let freedom = base.len().min(change.len()) - 1;
    let half = student(freedom as f64, TAIL)? * (error(base) + error(change)).sqrt();
    let difference = of_change - of_base;
    (difference.abs() - half > ALIKE).then(|| Frame {
        kind,
        name: name.to_owned(),
        base: of_base,
        change: of_change,
        interval: (difference - half, difference + half),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(parts: [[u64; 4]; 2]) -> SeenByBoth {
        let side = |[parse, copy, write, idle]: [u64; 4]| {
            // Each second has a few samples more or less than the next.
            let part = |more: u64| {
                let (parse, write) = (parse + more, write + 3 - more);
                format!(
                    "main;tokio::run;shop::checkout;shop::parse {parse}\n\
                     main;tokio::run;shop::checkout;shop::parse;memcpy {copy}\n\
                     main;tokio::run;shop::write;write {write}\n[idle] {idle}\n"
                )
            };
            [0, 2, 3, 1, 2].map(part).into()
        };
        SeenByBoth {
            kind: ProfileKind::Cpu,
            seconds: 5,
            base: side(parts[0]),
            change: side(parts[1]),
        }
    }

    #[test]
    fn the_frames_whose_share_changed_are_told_without_their_callers() {
        let told = changed(&seen([[50, 5, 50, 300], [200, 5, 50, 10]]));
        let names: Vec<&str> = told.iter().map(|one| &*one.name).collect();
        // `checkout`, `main` and the runtime are left out, because they only call these.
        assert_eq!(names, ["shop::parse", "shop::write", "memcpy"]);
        assert!((told[0].base - 0.53).abs() < 0.02 && (told[0].change - 0.8).abs() < 0.02);
        let (low, high) = told[0].interval;
        assert!(0.2 < low && low < high && high < 0.4, "{low} {high}");
    }

    #[test]
    fn nothing_is_told_of_equal_profiles_of_few_samples_or_of_one_part() {
        let same = [[50, 5, 50, 0], [50, 5, 50, 700]];
        assert_eq!(changed(&seen(same)), []);
        assert_eq!(changed(&seen([[5, 5, 20, 0], [20, 5, 5, 0]])), []);
        let mut one = seen([[500, 5, 50, 0], [50, 5, 500, 0]]);
        one.base.truncate(1);
        assert_eq!(changed(&one), []);
    }
}
