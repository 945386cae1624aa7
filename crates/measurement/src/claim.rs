//! What a chapter asserts: the mechanism (a count that noise cannot touch) and
//! the effect (a ratio that it can).

use serde::{Deserialize, Serialize};

use crate::{figures, outcome::Outcome};

/// The variant with the fault.
pub const PROBLEM: &str = "problem";
/// The variant that the learner edits.
pub const EXERCISE: &str = "exercise";
/// The variant without the fault.
pub const SOLUTION: &str = "solution";

/// A count that tells the two variants apart whatever the machine does meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// What is counted, as reports print it.
    pub name: String,
    /// The name under which the server's `/metrics` carries it.
    pub metric: String,
    /// What the problem's count must satisfy.
    pub problem: Bound,
    /// What the solution's count must satisfy, and the exercise's when it is checked.
    pub solution: Bound,
    /// The setting of rounds of its own, on a build with `features`; without it the count is taken
    /// in the effect's rounds. For counts that would slow the server down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// Cargo features of the build that counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

/// A limit on a count: `{ at_most = 1 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// No less than this share (0 to 1) of the simultaneous users.
    AtLeastShareOfUsers(f64),
}

impl Bound {
    /// The number that the limit comes to for so many users.
    pub fn limit(self, users: u32) -> f64 {
        match self {
            Self::AtMost(limit) | Self::AtLeast(limit) => limit,
            Self::AtLeastShareOfUsers(share) => share * f64::from(users),
        }
    }

    /// Whether `reading` keeps to it. Something that is not a number never does.
    pub fn holds(self, reading: f64, users: u32) -> bool {
        match self {
            Self::AtMost(limit) => reading <= limit,
            Self::AtLeast(_) | Self::AtLeastShareOfUsers(_) => reading >= self.limit(users),
        }
    }

    /// The reading that comes nearest to breaking it; `None` without a reading
    /// or with one that is not a number.
    pub fn worst(self, readings: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut readings = readings.into_iter().peekable();
        readings.peek()?;
        let worst = match self {
            Self::AtMost(_) => f64::max,
            Self::AtLeast(_) | Self::AtLeastShareOfUsers(_) => f64::min,
        };
        readings
            .map(|reading| (!reading.is_nan()).then_some(reading))
            .try_fold(None, |worst_yet: Option<f64>, reading| {
                let reading = reading?;
                Some(Some(worst_yet.map_or(reading, |yet| worst(yet, reading))))
            })
            .flatten()
    }
}

/// What is compared between problem and solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Right answers a second: larger is better.
    RequestsPerSecond,
    /// Median latency in ms: smaller is better.
    P50Ms,
    /// 99th percentile of the latency in ms: smaller is better.
    P99Ms,
    /// 99th percentile of the probe's latency in ms, from the scheduled moment: smaller is better.
    ProbeP99Ms,
}

impl Metric {
    /// Its key in `chapter.toml` and in the JSON summary.
    pub fn key(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests_per_second",
            Self::P50Ms => "p50_ms",
            Self::P99Ms => "p99_ms",
            Self::ProbeP99Ms => "probe_p99_ms",
        }
    }

    /// What it is called in a sentence.
    pub fn label(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests a second",
            Self::P50Ms => "median latency",
            Self::P99Ms => "99th percentile of latency",
            Self::ProbeP99Ms => "99th percentile of everybody else's latency",
        }
    }

    /// A value of it for people, unit included where the label lacks it.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::RequestsPerSecond if value >= 100.0 => figures::count(value.round()),
            Self::RequestsPerSecond => figures::ratio(value),
            Self::P50Ms | Self::P99Ms | Self::ProbeP99Ms => figures::milliseconds(value),
        }
    }

    /// Whether its value in this run is a lower limit: a latency of which only
    /// the requests that were answered speak, while more were still waiting.
    pub fn is_at_least(self, outcome: &Outcome) -> bool {
        match self {
            Self::RequestsPerSecond => false,
            Self::P50Ms | Self::P99Ms => outcome.unfinished > outcome.completed,
            // Those without an answer are the slowest: one in a hundred of them decides.
            Self::ProbeP99Ms => outcome
                .probe
                .as_ref()
                .is_some_and(|probe| 100 * probe.unfinished > probe.completed),
        }
    }

    /// Its value in one run for people; a lower limit says so.
    pub fn text_of(self, outcome: &Outcome) -> String {
        let over = if self.is_at_least(outcome) {
            "over "
        } else {
            ""
        };
        self.of(outcome).map_or_else(
            || "unknown".to_owned(),
            |value| format!("{over}{}", self.text(value)),
        )
    }

    /// Its value in one run; `None` when nothing was completed, so that
    /// silence never passes for speed.
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        if outcome.completed == 0 {
            return None;
        }
        let value = match self {
            Self::RequestsPerSecond => Some(outcome.requests_per_second),
            Self::P50Ms => outcome.latency.at(0.5),
            Self::P99Ms => outcome.latency.at(0.99),
            Self::ProbeP99Ms => outcome.probe.as_ref()?.latency.at(0.99),
        }?;
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// How many times better `better` is than `worse`, larger being better
    /// whatever the metric; `None` when either has no value.
    pub fn ratio(self, worse: &Outcome, better: &Outcome) -> Option<f64> {
        Some(self.gain(self.of(worse)?, self.of(better)?))
    }

    /// How many times better the value `better` is than `worse`, larger being better.
    pub fn gain(self, worse: f64, better: f64) -> f64 {
        match self {
            Self::RequestsPerSecond => better / worse,
            Self::P50Ms | Self::P99Ms | Self::ProbeP99Ms => worse / better,
        }
    }
}

/// What the cure gains, and in which setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The setting in which it is judged: a key of `[settings]`.
    pub setting: String,
    /// What is compared.
    pub metric: Metric,
    /// The claimed ratio, solution to problem, larger being better.
    pub at_least: f64,
}

/// How near the solution comes to the most that the law allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NearTheBound {
    /// The setting in which it is judged: a key of `[settings]`.
    pub setting: String,
    /// The claimed share (0 to 1) of the law's bound on requests a second.
    pub at_least_share: f64,
}

/// Another setting in which problem and solution are compared, law and measurement side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The setting: a key of `[settings]`.
    pub setting: String,
    /// The ratio that is claimed there, solution to problem; without it the point is only shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

impl Point {
    /// Pairs of rounds at each point, problem and solution in turn (ABBA).
    pub const PAIRS: u32 = 2;
}

/// What the learner's edit must reach for `check` to pass it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The setting in which it is graded: a key of `[settings]`.
    pub setting: String,
    /// The ratio, exercise to problem, larger being better. Below 1 where what else runs may take
    /// the whole gain, or where it needs more memory regions than most machines have: then it bounds
    /// the loss, and only the count can tell.
    pub at_least: f64,
    /// A ratio that no cure can reach: beyond it the work was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// A counter on `/metrics` that every answer must have raised by one, unless it is the calls to
    /// the database: an answer without it was got by leaving out the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<String>,
    /// Other counts that the edit must keep to, read like the mechanism.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// Whether the data seed is put at the end of the body of writes, so that what they leave behind
    /// cannot be foreseen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vary_writes: bool,
}

/// A count that an edit must keep to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// What is counted, as the reason prints it.
    pub name: String,
    /// The name under which the server's `/metrics` carries it.
    pub metric: String,
    /// No more than this.
    pub at_most: f64,
    /// Whether it is left out where the server's system does not tell it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub where_told: bool,
}

/// What must be true of the machine and the run before the claim can be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Pairs of rounds. Below six no interval can hold the median 95 times of a
    /// hundred: even the span of all n ratios misses it 2^(1-n) of the time.
    pub pairs_at_least: u32,
    /// Processors that the run may use.
    #[serde(default = "one")]
    pub processors_at_least: u32,
    /// Memory regions (NUMA nodes) that the machine has.
    #[serde(default = "one")]
    pub memory_regions_at_least: u32,
}

fn one() -> u32 {
    1
}
