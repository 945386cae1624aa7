//! Functions whose share of the stacks differs between the base and the change.

use std::collections::{BTreeMap, BTreeSet};

use await_profile::drawing::legible;
use drawing::folded::{MEANINGFUL, stacks, total, without_idle};
use ecosystem::{crate_of, place_of};
use statistics::profile::ProfileKind;
use statistics::profile::SeenByBoth;
use statistics::student;

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
    /// Returns the size of the difference, in steps of what counts as equal.
    fn steps(&self) -> f64 {
        ((self.change - self.base).abs() / ALIKE).round()
    }

    /// Returns whether the shares of another frame are equal.
    fn is_alike(&self, other: &Self) -> bool {
        (self.base - other.base).abs() < ALIKE && (self.change - other.change).abs() < ALIKE
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
        let (base, change) = match (base.get(name), change.get(name)) {
            (Some(base), Some(change)) => (base.clone(), change.clone()),
            // A side that never has the frame has a share of 0 in as many parts as the other side has it.
            (Some(base), None) => (base.clone(), base.none()),
            (None, Some(change)) => (change.none(), change.clone()),
            (None, None) => continue,
        };
        let depth = base.depth.max(change.depth);
        if let Some(frame) = frame(seen.kind, name, &base.shares, &change.shares) {
            frames.push((depth, frame));
        }
    }
    // If a function and its caller have the same share, the function comes first.
    frames.sort_by(|(depth, a), (other_depth, b)| {
        let by_own = b.is_own().cmp(&a.is_own());
        let by_size = b.steps().total_cmp(&a.steps());
        by_own.then(by_size).then(other_depth.cmp(depth))
    });
    let mut told: Vec<Frame> = Vec::new();
    for (_, frame) in frames {
        if told.len() < MOST && !told.iter().any(|one| one.is_alike(&frame)) {
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

impl Seen {
    /// Returns the shares of a side that never has the frame.
    fn none(&self) -> Self {
        Self {
            shares: vec![0.0; self.shares.len()],
            depth: 0,
        }
    }
}

/// Returns the shares of all frames; `None` if there are too few samples or parts.
fn shares(kind: ProfileKind, parts: &[String]) -> Option<BTreeMap<String, Seen>> {
    let (mut busy, mut totals) = (Vec::new(), Vec::new());
    for part in parts {
        let part = legible(&without_idle(part).0);
        totals.push(total(&part).ok()?);
        busy.push(part);
    }
    // Await profiles count microseconds, not samples.
    let is_few = kind != ProfileKind::Await && totals.iter().sum::<u64>() < MEANINGFUL;
    if is_few || totals.len() < 3 || totals.contains(&0) {
        return None;
    }
    let mut all: BTreeMap<String, Seen> = BTreeMap::new();
    for (at, (part, total)) in busy.iter().zip(&totals).enumerate() {
        for (frames, count) in stacks(part).flatten() {
            // A function that calls itself counts once.
            let mut names = BTreeMap::new();
            for (depth, name) in frames.split(';').enumerate() {
                names.insert(name, depth);
            }
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
    let (of_base, of_change) = (mean(base), mean(change));
    let variance = variance_of_mean(base) + variance_of_mean(change);
    // The smaller number is on the safe side.
    let freedom = base.len().min(change.len()) - 1;
    let half = student(freedom as f64, TAIL)? * variance.sqrt();
    let difference = of_change - of_base;
    if difference.abs() - half <= ALIKE {
        return None;
    }
    Some(Frame {
        kind,
        name: name.to_owned(),
        base: of_base,
        change: of_change,
        interval: (difference - half, difference + half),
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance_of_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() - 1) as f64 / values.len() as f64
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
