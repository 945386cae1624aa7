//! How far figures would move if the same profile were taken again.
//!
//! Moments that lie close together see the same requests in the same waits, so they tell less than as
//! many that lie far apart. Drawing single moments at random, as the ordinary bootstrap does, takes
//! them for independent and makes the interval too narrow. Here whole blocks of consecutive moments
//! are drawn: the moving block bootstrap ([Künsch 1989]), with the profile closed to a circle so that
//! no moment is drawn less often than others ([Politis and Romano 1994]).
//!
//! A block is a sixteenth of the profile. It keeps whatever hangs together for less time than that.
//!
//! [Künsch 1989]: https://doi.org/10.1214/aos/1176347265
//! [Politis and Romano 1994]: https://doi.org/10.1080/01621459.1994.10476870

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// So many blocks are drawn for one resample, or a few more where runs do not divide evenly.
const BLOCKS: usize = 16;
/// Of fewer moments there is no interval: a block would be one moment.
const FEWEST_RUNS: usize = 2 * BLOCKS;
/// Twice as many runs as are kept at least: then two become one.
const MOST_RUNS: usize = 8 * BLOCKS;
const RESAMPLES: usize = 1000;
/// The same profile has the same intervals, whenever they are asked for.
const SEED: u64 = 1989;
/// Sixteen blocks vary about their own mean by √(15/16) of what they do about the true one. And
/// the spread of so few is itself uncertain, by which Student's t is wider than the normal
/// distribution: 2.07 for 1.96, since blocks that overlap have half as many again as the fifteen
/// degrees of freedom of those that do not.
const WIDENING: f64 = 1.09;

/// The 95 % interval of a figure: of a hundred profiles of the same service under the same load,
/// about 95 have the long-run mean in theirs.
///
/// It covers what chance does to a profile: which requests were chosen, at which moments, and what
/// the service happened to be doing. It does not cover what hangs together for longer than a
/// sixteenth of the profile, and a place where *all* samples fell has an interval without width.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Interval {
    /// Its lower end, in the unit of the figure.
    pub low: f64,
    /// Its upper end, in the unit of the figure.
    pub high: f64,
}

/// The moments of a profile in runs of equal length, the last one longer by what is left.
pub(crate) struct Runs {
    /// Moments in a run.
    length: u64,
    ends: Vec<RunEnd>,
}

/// What there was from the begin of sampling to the end of a run.
pub(crate) struct RunEnd {
    pub(crate) moments: u64,
    pub(crate) time: Duration,
    /// Requests finished.
    pub(crate) requests: u64,
    /// Requests and bodies finished, by route.
    pub(crate) finished: HashMap<Arc<str>, u64>,
}

impl Default for Runs {
    fn default() -> Self {
        Runs {
            length: 1,
            ends: Vec::new(),
        }
    }
}

impl Runs {
    /// Whether a run ends after so many moments.
    pub(crate) fn end_at(&self, moments: u64) -> bool {
        moments % self.length == 0
    }

    pub(crate) fn push(&mut self, end: RunEnd) {
        self.ends.push(end);
        if self.ends.len() == MOST_RUNS {
            let mut is_second = true;
            self.ends.retain(|_| {
                is_second = !is_second;
                is_second
            });
            self.length *= 2;
        }
    }

    /// Moments since the last run belong to it.
    pub(crate) fn close(&mut self, end: RunEnd) {
        self.ends.pop();
        self.ends.push(end);
    }

    /// Adds what a moment has to the sum of its run.
    pub(crate) fn add(&self, sums: &mut Vec<f64>, moment: u64, value: f64) {
        sums.resize(self.ends.len().max(1), 0.0);
        let run = usize::try_from(moment / self.length).unwrap_or(usize::MAX);
        let run = run.min(sums.len() - 1);
        sums[run] += value;
    }

    pub(crate) fn moments(&self) -> Vec<f64> {
        self.differences(|end| end.moments as f64)
    }

    /// In seconds.
    pub(crate) fn times(&self) -> Vec<f64> {
        self.differences(|end| end.time.as_secs_f64())
    }

    /// Requests finished, of this route or of all.
    pub(crate) fn finished(&self, route: Option<&str>) -> Vec<f64> {
        self.differences(|end| match route {
            Some(route) => end.finished.get(route).copied().unwrap_or(0) as f64,
            None => end.requests as f64,
        })
    }

    fn differences(&self, of: impl Fn(&RunEnd) -> f64) -> Vec<f64> {
        let mut before = 0.0;
        let difference = |end: &RunEnd| of(end) - std::mem::replace(&mut before, of(end));
        self.ends.iter().map(difference).collect()
    }
}

/// The interval of a figure that is computed from sums over all runs; `series` has the summands of
/// each sum, run by run. None if there are too few, or if chance can leave the figure undefined, as
/// where next to no request finished.
pub(crate) fn interval<const SUMS: usize>(
    series: [&[f64]; SUMS],
    figure: impl Fn([f64; SUMS]) -> f64,
) -> Option<Interval> {
    let runs = series.iter().map(|summands| summands.len()).min()?;
    if runs < FEWEST_RUNS {
        return None;
    }
    // What all runs before this one sum to, twice around the circle.
    let mut before = vec![[0.0; SUMS]];
    for run in (0..runs).chain(0..runs) {
        let last = before[before.len() - 1];
        before.push(std::array::from_fn(|sum| last[sum] + series[sum][run]));
    }
    let length = runs / BLOCKS;
    let blocks = (runs + length / 2) / length;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut resample = || {
        let mut drawn = [0.0; SUMS];
        for _ in 0..blocks {
            let from = random.usize(..runs);
            let block = std::iter::zip(&before[from + length], &before[from]);
            for (sum, (to, from)) in std::iter::zip(&mut drawn, block) {
                *sum += to - from;
            }
        }
        figure(drawn)
    };
    let mut figures: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    figures.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    let ends = [figures[tail], figures[RESAMPLES - 1 - tail]];
    let all = figure(before[runs]);
    let [low, high] = ends.map(|end| all + (end - all) * WIDENING);
    (low.is_finite() && high.is_finite()).then(|| Interval {
        low: low.min(all).max(0.0),
        high: high.max(all),
    })
}

/// As [`interval`], of one sum's share in another.
pub(crate) fn share_interval(part: &[f64], all: &[f64]) -> Option<Interval> {
    let interval = interval([part, all], |[part, all]| part / all)?;
    Some(Interval {
        high: interval.high.min(1.0),
        ..interval
    })
}
