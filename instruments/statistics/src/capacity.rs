//! Search for the capacity of a service: the highest rate at which it still keeps what is asked of it.
//!
//! The search loads the service at one rate after the other. A step *holds* if the conditions were kept in it. Whether
//! one does is partly chance, the more so the nearer its rate is to the capacity; the capacity is the rate at which half
//! of the steps hold. So this is the search for a threshold by answers that are sometimes wrong, which psychologists
//! know well: a logistic curve gives the probability that a step holds, all values of its parameters have a probability,
//! each step multiplies these by its likelihood (Bayes), and the next rate is one that is about as likely to hold as not
//! (A. B. Watson, D. G. Pelli, "QUEST: A Bayesian adaptive psychometric method", Perception & Psychophysics 33(2), 1983;
//! with an unknown slope, L. L. Kontsevich, C. W. Tyler, "Bayesian adaptive estimation of psychometric slope and
//! threshold", Vision Research 39, 1999). With steps that are never wrong, it is a bisection.
//!
//! A capacity that drifts, as that of a service that warms up, is a third parameter: the interval allows for it, and
//! says so if it is likely. The tests simulate how often the interval misses the capacity.
//!
//! Two builds are searched by steps in turn, so that what the machine does at one time falls on both. Their intervals make
//! that of the ratio.

use serde::Serialize;

use crate::abba;

/// Longest search, in seconds. The drift is the change over this time.
pub const LONGEST_S: f64 = 240.0;
/// Width of the interval, as the ratio of its ends, at which the search ends: 5 % to each side.
const NARROW: f64 = 1.1;
/// Smallest number of steps.
const FEWEST: usize = 8;
/// Share of capacities outside the interval, at each side.
const TAIL: f64 = 0.025;

/// Distance of two capacities that are considered, as a logarithm.
const FINE: f64 = 0.02;
/// Number of capacities that are considered to each side of the first rates between which it seems to lie: up to twenty
/// times as much or as little.
const FAR: i32 = 150;
/// Number of all capacities.
const CAPACITIES: usize = 301;
/// Steepness of the curve: the logarithm of the rate by which the odds of holding change by a factor of *e*.
const SLOPES: [f64; 4] = [0.008, 0.025, 0.08, 0.2];
/// Drifts over [`LONGEST_S`], as logarithms, and their probability beforehand.
const DRIFTS: [(f64, f64); 5] = [
    (-0.4, 0.05),
    (-0.2, 0.1),
    (0.0, 0.7),
    (0.2, 0.1),
    (0.4, 0.05),
];
/// Probability that a step fails far below the capacity, because something else had the machine.
const FAILS: f64 = 0.05;
/// Probability that a step holds far above the capacity.
const HOLDS: f64 = 0.01;
/// Probability of no drift below which a drift is reported.
const STEADY: f64 = 0.1;
/// Quantiles of the capacity whose rates are tried in turn. Rates to both sides of the capacity tell the slope.
const TRIED: [f64; 2] = [0.35, 0.65];

/// One step of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Requests per second.
    pub rate: f64,
    /// Time of its middle since the search began, in seconds.
    pub at_s: f64,
    /// Set if the service kept the conditions.
    pub holds: bool,
}

/// Highest rate that a service sustains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// Requests per second at which half of the steps hold: the median of what is likely.
    pub rate: f64,
    /// Interval that holds it with a probability of 95 %.
    pub interval: (f64, f64),
    /// Factor by which it changed during the search; `None` if it is likely that it did not.
    pub drift: Option<f64>,
}

/// Ratio of the capacity of one build to that of another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Change to base: larger is better.
    pub ratio: f64,
    /// Interval of the true ratio.
    pub interval: (f64, f64),
}

/// A search, as far as it is.
#[derive(Debug, Clone)]
pub struct Search {
    first: f64,
    steps: Vec<Step>,
    /// `None` until a step held and another failed.
    likely: Option<Likely>,
    /// Rate that the generator cannot reach.
    ceiling: f64,
}

impl Search {
    /// Begins a search with a step at `rate` requests per second, which may be far from the capacity.
    pub fn from(rate: f64) -> Self {
        Self {
            first: rate,
            steps: Vec::new(),
            likely: None,
            ceiling: f64::INFINITY,
        }
    }

    /// Adds a step.
    pub fn add(&mut self, step: Step) {
        self.steps.push(step);
        let (held, failed) = (self.held(), self.failed());
        match (&mut self.likely, held, failed) {
            (Some(likely), ..) => likely.add(step),
            (None, Some(held), Some(failed)) => {
                let mut likely = Likely::around((held * failed).sqrt());
                for step in &self.steps {
                    likely.add(*step);
                }
                self.likely = Some(likely);
            }
            _ => {}
        }
    }

    /// Notes that the generator cannot send so many requests per second: no further step comes near it.
    pub fn cannot_reach(&mut self, rate: f64) {
        self.ceiling = self.ceiling.min(rate);
    }

    /// Returns the rate of the next step, which begins `at_s` seconds after the search.
    pub fn next(&self, at_s: f64) -> f64 {
        let rate = match (&self.likely, self.held(), self.failed()) {
            (Some(likely), Some(held), Some(failed)) => {
                let tried = TRIED[self.steps.len() % TRIED.len()];
                let (low, high) = (held.min(failed) / 2.0, held.max(failed) * 2.0);
                likely.quantile(tried, at_s).clamp(low, high)
            }
            (_, Some(held), _) => held * 2.0,
            (_, _, Some(failed)) => failed / 2.0,
            _ => self.first,
        };
        rate.min(self.ceiling * 0.8)
    }

    /// Returns whether no further step is needed.
    pub fn is_decided(&self) -> bool {
        if self.is_generator_bound() {
            return true;
        }
        match self.capacity() {
            Some(Capacity { interval, .. }) => {
                self.steps.len() >= FEWEST && interval.1 / interval.0 <= NARROW
            }
            None => false,
        }
    }

    /// Returns whether the generator is the limit: a rate just below what it can send holds, and more cannot be shown.
    pub fn is_generator_bound(&self) -> bool {
        self.held().unwrap_or(0.0) >= 0.7 * self.ceiling
    }

    /// Returns the capacity at the middle of the search; `None` before some step held and another failed.
    pub fn capacity(&self) -> Option<Capacity> {
        let (first, last) = (self.steps.first()?, self.steps.last()?);
        let (low, rate, high) = self.within(TAIL, self.middle_s()?)?;
        Some(Capacity {
            rate,
            interval: (low, high),
            drift: self.likely.as_ref()?.drift(last.at_s - first.at_s),
        })
    }

    /// Returns the mean time of the steps.
    fn middle_s(&self) -> Option<f64> {
        let sum: f64 = self.steps.iter().map(|step| step.at_s).sum();
        (!self.steps.is_empty()).then(|| sum / self.steps.len() as f64)
    }

    /// Returns the median of the capacity at a time, between the rates with the share `tail` below and above them.
    fn within(&self, tail: f64, at_s: f64) -> Option<(f64, f64, f64)> {
        let likely = self.likely.as_ref()?;
        let [low, middle, high] = [tail, 0.5, 1.0 - tail].map(|one| likely.quantile(one, at_s));
        Some((low, middle, high))
    }

    /// Returns the highest rate that held.
    pub fn held(&self) -> Option<f64> {
        let held = self.steps.iter().filter(|step| step.holds);
        held.map(|step| step.rate).reduce(f64::max)
    }

    /// Returns the lowest rate that failed.
    pub fn failed(&self) -> Option<f64> {
        let failed = self.steps.iter().filter(|step| !step.holds);
        failed.map(|step| step.rate).reduce(f64::min)
    }
}

/// Numbers of steps of each build after which a comparison of capacities may end. It may also end when its time is over.
const AFTER: [usize; 5] = [8, 12, 18, 28, 42];
/// Share of capacities outside the interval of a ratio, at each side: as for other comparisons, all intervals together miss
/// the ratio in at most 2 % of comparisons (Bonferroni's bound).
const TAIL_OF_RATIO: f64 = 0.02 / 2.0 / (AFTER.len() + 1) as f64;

/// Searches for the capacities of two builds, by steps in turn.
#[derive(Debug, Clone)]
pub struct Searches {
    /// That of the base.
    pub base: Search,
    /// That of the change.
    pub change: Search,
}

impl Searches {
    /// Returns the order of `pairs` pairs of steps; `true` is a step of the change.
    pub fn order(pairs: u32) -> impl Iterator<Item = bool> {
        abba(false, true, pairs)
    }

    /// Returns whether the comparison may end now.
    pub fn is_look(&self) -> bool {
        let (base, change) = (self.base.steps.len(), self.change.steps.len());
        base == change && AFTER.contains(&base)
    }

    /// Returns whether no further step is made.
    pub fn is_last(&self) -> bool {
        let fewest = self.base.steps.len().min(self.change.steps.len());
        Some(&fewest) >= AFTER.last()
    }

    /// Returns the ratio of the capacities at the middle of the searches; `None` before both have steps that held and others
    /// that failed. Its interval comes from theirs (G. Y. Zou, A. Donner, "Construction of confidence limits about effect
    /// measures: a general approach", Statistics in Medicine 27(10), 2008): as logarithms, its ends are as far from the ratio
    /// as the square root of the sum of the squares of what each interval allows in that direction.
    pub fn ratio(&self) -> Option<Ratio> {
        let at_s = f64::midpoint(self.base.middle_s()?, self.change.middle_s()?);
        let base = self.base.within(TAIL_OF_RATIO, at_s)?;
        let change = self.change.within(TAIL_OF_RATIO, at_s)?;
        let ratio = change.1 / base.1;
        let below = (change.1 / change.0).ln().hypot((base.2 / base.1).ln());
        let above = (change.2 / change.1).ln().hypot((base.1 / base.0).ln());
        Some(Ratio {
            ratio,
            interval: (ratio * (-below).exp(), ratio * above.exp()),
        })
    }
}

/// How likely all capacities are that are considered, with each slope and each drift.
#[derive(Debug, Clone)]
struct Likely {
    /// Logarithm of the capacity in the middle.
    middle: f64,
    /// In proportion to the probability: for each drift, of each capacity, with each slope.
    cells: Vec<[[f64; SLOPES.len()]; CAPACITIES]>,
}

impl Likely {
    fn around(rate: f64) -> Self {
        let of_drift = |(_, before)| [[before; SLOPES.len()]; CAPACITIES];
        Self {
            middle: rate.ln(),
            cells: DRIFTS.map(of_drift).to_vec(),
        }
    }

    /// Multiplies the probabilities by the likelihood of a step. It is at least [`HOLDS`], so the products of a search
    /// stay far above the smallest number.
    fn add(&mut self, step: Step) {
        for ((drift, _), of_drift) in DRIFTS.iter().zip(&mut self.cells) {
            let rate = step.rate.ln() - self.middle - drift * since_middle(step.at_s);
            for (capacity, of_capacity) in (-FAR..=FAR).zip(of_drift) {
                let above = rate - f64::from(capacity) * FINE;
                for (slope, cell) in SLOPES.iter().zip(of_capacity) {
                    let holds = HOLDS + (1.0 - FAILS - HOLDS) / (1.0 + (above / slope).exp());
                    *cell *= if step.holds { holds } else { 1.0 - holds };
                }
            }
        }
    }

    /// Returns a quantile of the capacity as it is `at_s` seconds after the begin.
    fn quantile(&self, quantile: f64, at_s: f64) -> f64 {
        let mut all = Vec::new();
        for ((drift, _), of_drift) in DRIFTS.iter().zip(&self.cells) {
            let middle = self.middle + drift * since_middle(at_s);
            for (capacity, of_capacity) in (-FAR..=FAR).zip(of_drift) {
                let weight: f64 = of_capacity.iter().sum();
                all.push((middle + f64::from(capacity) * FINE, weight));
            }
        }
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let mut found = self.middle;
        for (capacity, weight) in all {
            found = capacity;
            if below + weight >= quantile * sum {
                // A capacity stands for those around it.
                found += FINE * ((quantile * sum - below) / weight - 0.5);
                break;
            }
            below += weight;
        }
        found.exp()
    }

    /// Returns the factor of the drift over `seconds`, unless it is likely that there is none.
    fn drift(&self, seconds: f64) -> Option<f64> {
        let of_drift =
            |cells: &[[f64; SLOPES.len()]; CAPACITIES]| cells.iter().flatten().sum::<f64>();
        let by_drift: Vec<f64> = self.cells.iter().map(of_drift).collect();
        let sum: f64 = by_drift.iter().sum();
        let (mut steady, mut mean) = (0.0, 0.0);
        for ((drift, _), weight) in DRIFTS.iter().zip(by_drift) {
            if *drift == 0.0 {
                steady = weight / sum;
            }
            mean += drift * weight / sum;
        }
        (steady < STEADY).then(|| (mean * seconds / LONGEST_S).exp())
    }
}

/// Returns the distance from the middle of the longest search, in multiples of its length.
fn since_middle(at_s: f64) -> f64 {
    at_s / LONGEST_S - 0.5
}
