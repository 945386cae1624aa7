//! Intervals: how far figures would move if the same profile were taken again.
//!
//! Moments that lie close together see the same requests in the same waits. So they say less than as
//! many moments that lie far apart. The ordinary bootstrap draws single moments at random, as if
//! they were independent, which makes the interval too narrow.
//!
//! So this module draws whole blocks of consecutive moments: the moving block bootstrap
//! ([Künsch 1989]). The profile is closed to a circle, so that no moment is drawn less often than
//! others ([Politis and Romano 1994]). A block is a sixteenth of the profile. It preserves every
//! dependence that lasts for less time than that.
//!
//! [Künsch 1989]: https://doi.org/10.1214/aos/1176347265
//! [Politis and Romano 1994]: https://doi.org/10.1080/01621459.1994.10476870

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ecosystem::Interval;

/// Number of blocks in one resample, or a few more if runs do not divide evenly.
const BLOCKS: usize = 16;
/// Fewest runs for an interval. With fewer, a block would be one moment.
const FEWEST_RUNS: usize = 2 * BLOCKS;
/// Number of runs at which each two become one, so that half as many are left.
const MOST_RUNS: usize = 8 * BLOCKS;
const RESAMPLES: usize = 1000;
/// Seed of the resamples, so that the same profile always has the same intervals.
const SEED: u64 = 1989;
/// Factor by which the interval of the resamples is widened, for two reasons. The spread of sixteen
/// blocks about their own mean is √(15/16) of their spread about the true mean. That spread is also
/// uncertain, so Student's t applies instead of the normal distribution: 2.07 instead of 1.96.
/// It has 22 degrees of freedom, since overlapping blocks have half as many again as the fifteen of
/// separate ones.
const WIDENING: f64 = 1.09;

/// Moments of a profile in runs of equal length. The last run may be longer.
pub(crate) struct Runs {
    /// Number of moments in a run.
    length: u64,
    ends: Vec<RunEnd>,
}

/// Totals from the start of sampling to the end of a run.
pub(crate) struct RunEnd {
    pub(crate) moments: u64,
    pub(crate) time: Duration,
    /// Number of requests finished.
    pub(crate) requests: u64,
    /// Number of requests and bodies finished, by route.
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
    /// Returns whether a run ends after this number of moments.
    pub(crate) fn end_at(&self, moments: u64) -> bool {
        moments.is_multiple_of(self.length)
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

    /// Closes the last run at `end`: the moments since then belong to it.
    pub(crate) fn close(&mut self, end: RunEnd) {
        self.ends.pop();
        self.ends.push(end);
    }

    /// Adds the value of a moment to the sum of its run.
    pub(crate) fn add(&self, sums: &mut Vec<f64>, moment: u64, value: f64) {
        sums.resize(self.ends.len().max(1), 0.0);
        let run = usize::try_from(moment / self.length).unwrap_or(usize::MAX);
        let run = run.min(sums.len() - 1);
        sums[run] += value;
    }

    pub(crate) fn moments(&self) -> Vec<f64> {
        self.differences(|end| end.moments as f64)
    }

    /// Returns the duration of each run, in seconds.
    pub(crate) fn times(&self) -> Vec<f64> {
        self.differences(|end| end.time.as_secs_f64())
    }

    /// Returns the number of finished requests in each run, of this route or of all.
    pub(crate) fn finished(&self, route: Option<&str>) -> Vec<f64> {
        self.differences(|end| match route {
            Some(route) => end.finished.get(route).copied().unwrap_or(0) as f64,
            None => end.requests as f64,
        })
    }

    fn differences(&self, of: impl Fn(&RunEnd) -> f64) -> Vec<f64> {
        let (mut differences, mut before) = (Vec::new(), 0.0);
        for end in &self.ends {
            let now = of(end);
            differences.push(now - before);
            before = now;
        }
        differences
    }
}

/// Returns the interval of a figure that is computed from sums over all runs. `series` has the
/// summands of each sum, run by run. Returns None if there are too few runs, or if chance can make the
/// figure undefined because next to no request finished.
pub(crate) fn interval<const SUMS: usize>(
    series: [&[f64]; SUMS],
    figure: impl Fn([f64; SUMS]) -> f64,
) -> Option<Interval> {
    let runs = series.iter().map(|summands| summands.len()).min()?;
    if runs < FEWEST_RUNS {
        return None;
    }
    // Prefix sums over the runs, twice around the circle.
    let mut before = vec![[0.0; SUMS]];
    for place in 0..2 * runs {
        let last = before[place];
        before.push(std::array::from_fn(|sum| {
            last[sum] + series[sum][place % runs]
        }));
    }
    let length = runs / BLOCKS;
    let blocks = (runs + length / 2) / length;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut figures = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let mut drawn = [0.0; SUMS];
        for _ in 0..blocks {
            let from = random.usize(..runs);
            for (sum, drawn) in drawn.iter_mut().enumerate() {
                *drawn += before[from + length][sum] - before[from][sum];
            }
        }
        figures.push(figure(drawn));
    }
    figures.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    let ends = [figures[tail], figures[RESAMPLES - 1 - tail]];
    let all = figure(before[runs]);
    let [low, high] = ends.map(|end| all + (end - all) * WIDENING);
    if !low.is_finite() || !high.is_finite() {
        return None;
    }
    Some(Interval {
        low: low.min(all).max(0.0),
        high: high.max(all),
    })
}

/// Returns the [`interval`] of one sum's share in another.
pub(crate) fn share_interval(part: &[f64], all: &[f64]) -> Option<Interval> {
    let interval = interval([part, all], |[part, all]| part / all)?;
    Some(Interval {
        high: interval.high.min(1.0),
        ..interval
    })
}
