//! Quantities that a claim can be about: measured by the generator, or counted by the server.

use serde::{Deserialize, Serialize};
use statistics::figures;
use statistics::metric::Unit;

use engine::outcome::{Latency, Outcome};

/// A figure of one round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Quantity {
    /// Measured by the generator.
    Metric(LoadMetric),
    /// Share (0 to 1) of the server's CPU time that went into the work itself: `work_share_of_cpu_time`.
    WorkShare,
    /// Median latency of bystanders as a share of that of the load's own requests, in the same round:
    /// `bystander_share_of_p50`. A slower machine slows both.
    BystanderShare,
    /// A counter on the server's `/metrics`.
    Counter(String),
}

/// The counter of CPU time that went into the work itself, in seconds.
pub const WORK_CPU: &str = "work_cpu_seconds_total";

/// The key of [`Quantity::WorkShare`].
const WORK_SHARE: &str = "work_share_of_cpu_time";

/// The key of [`Quantity::BystanderShare`].
const BYSTANDER_SHARE: &str = "bystander_share_of_p50";

impl Default for Quantity {
    /// Makes the quantity of a claim that names none.
    fn default() -> Self {
        Self::Counter(String::new())
    }
}

impl Quantity {
    /// Returns whether it names no quantity, because the claim leaves it out.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.key().is_empty()
    }

    /// Returns its key in `chapter.toml` and in JSON.
    pub fn key(&self) -> &str {
        match self {
            Self::Metric(metric) => metric.key(),
            Self::WorkShare => WORK_SHARE,
            Self::BystanderShare => BYSTANDER_SHARE,
            Self::Counter(name) => name,
        }
    }

    /// Returns the counter on `/metrics`; `None` for quantities that the generator measures.
    pub fn counter(&self) -> Option<&str> {
        match self {
            Self::Metric(_) | Self::BystanderShare => None,
            Self::WorkShare => Some(WORK_CPU),
            Self::Counter(name) => Some(name),
        }
    }

    /// Returns whether it is a count, which other programs cannot change as they can a time.
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Counter(_))
    }

    /// Returns whether it is a count for each answer that came in time. There are fewer of these on a busy machine.
    pub fn is_per_answer(&self) -> bool {
        matches!(self, Self::Counter(name) if name.ends_with("_per_answer"))
    }

    /// Returns its name in a sentence, unless the claim has a name for it.
    pub fn label(&self) -> &str {
        match self {
            Self::Metric(metric) => metric.label(),
            Self::WorkShare => "share of the CPU time that went into the work",
            Self::BystanderShare => "median latency of bystanders as a share of that of requests",
            Self::Counter(name) => name,
        }
    }

    /// Returns whether more of it is better.
    pub fn larger_is_better(&self) -> bool {
        match self {
            Self::Metric(LoadMetric::RequestsPerSecond) | Self::WorkShare | Self::Counter(_) => {
                true
            }
            Self::Metric(_) | Self::BystanderShare => false,
        }
    }

    /// Returns how many times better `better` is than `worse`, larger being better.
    pub fn gain(&self, worse: f64, better: f64) -> f64 {
        if self.larger_is_better() {
            better / worse
        } else {
            worse / better
        }
    }

    /// Formats a value of it for people.
    pub fn text(&self, unit: Unit, value: f64) -> String {
        match self {
            Self::Metric(metric) => metric.text(value),
            Self::WorkShare | Self::BystanderShare => figures::percent(value),
            Self::Counter(_) => unit.text(value),
        }
    }

    /// Returns the unit of its plain number, for JSON: `ms`, `bytes`, …; empty for a count.
    pub fn unit(&self, unit: Unit) -> &'static str {
        match self {
            Self::Metric(LoadMetric::RequestsPerSecond) => Unit::PerSecond.key(),
            Self::Metric(_) => Unit::Ms.key(),
            Self::WorkShare | Self::BystanderShare => "share",
            Self::Counter(_) => unit.key(),
        }
    }
}

impl From<String> for Quantity {
    fn from(text: String) -> Self {
        let metric = LoadMetric::ALL
            .into_iter()
            .find(|metric| metric.key() == text);
        match metric {
            Some(metric) => Self::Metric(metric),
            None if text == WORK_SHARE => Self::WorkShare,
            None if text == BYSTANDER_SHARE => Self::BystanderShare,
            None => Self::Counter(text),
        }
    }
}

impl From<Quantity> for String {
    fn from(quantity: Quantity) -> Self {
        quantity.key().to_owned()
    }
}

/// Metric of a round that the generator measures: those that claims are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMetric {
    /// Right answers per second: larger is better.
    RequestsPerSecond,
    /// Median latency in ms: smaller is better.
    P50Ms,
    /// 99th percentile of the latency in ms: smaller is better.
    P99Ms,
    /// 99th percentile of the bystanders' latency in ms, from the scheduled moment: smaller is
    /// better.
    BystanderP99Ms,
    /// Time in ms from the begin of the load's last phase until answers are in time again: smaller is better. It is at
    /// least a tenth of a second.
    RecoveryMs,
}

impl LoadMetric {
    const ALL: [Self; 5] = [
        Self::RecoveryMs,
        Self::RequestsPerSecond,
        Self::P50Ms,
        Self::P99Ms,
        Self::BystanderP99Ms,
    ];

    /// Returns its key in `chapter.toml` and in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests_per_second",
            Self::P50Ms => "p50_ms",
            Self::P99Ms => "p99_ms",
            Self::BystanderP99Ms => "bystander_p99_ms",
            Self::RecoveryMs => "recovery_ms",
        }
    }

    /// Returns its name in a sentence.
    pub fn label(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests per second",
            Self::P50Ms => "median latency",
            Self::P99Ms => "99th percentile of latency",
            Self::BystanderP99Ms => "99th percentile of bystander latency",
            Self::RecoveryMs => "time until answers are in time again",
        }
    }

    /// Formats a value of it for people, with the unit if the label lacks it.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::RequestsPerSecond if value >= 100.0 => figures::count(value.round()),
            Self::RequestsPerSecond => figures::ratio(value),
            Self::P50Ms | Self::P99Ms | Self::BystanderP99Ms | Self::RecoveryMs => {
                figures::milliseconds(value)
            }
        }
    }

    /// Returns whether its value in this run is a lower bound, because too many requests were still
    /// unanswered. Older records do not say so; their counts decide.
    pub fn is_at_least(self, outcome: &Outcome) -> bool {
        match self {
            Self::RequestsPerSecond => false,
            Self::P50Ms | Self::P99Ms if outcome.unfinished > outcome.completed => true,
            Self::P50Ms => is_lower_bound(&outcome.latency, 0.5),
            Self::P99Ms => is_lower_bound(&outcome.latency, 0.99),
            Self::RecoveryMs => match outcome.phases.last() {
                Some(phase) => phase.in_time_after_s.is_none(),
                None => false,
            },
            Self::BystanderP99Ms => match &outcome.bystander {
                // Unanswered requests are the slowest. Above 1 %, they decide the percentile.
                Some(bystander) if 100 * bystander.unfinished > bystander.completed => true,
                Some(bystander) => is_lower_bound(&bystander.latency, 0.99),
                None => false,
            },
        }
    }

    /// Formats its value in one run for people, and marks a lower bound.
    pub fn text_of(self, outcome: &Outcome) -> String {
        match self.of(outcome) {
            Some(value) => self.bounded_text(value, self.is_at_least(outcome)),
            None => "unknown".to_owned(),
        }
    }

    /// Formats a value for people, and marks it if it is a lower bound.
    pub fn bounded_text(self, value: f64, is_at_least: bool) -> String {
        let over = figures::over(is_at_least);
        format!("{over}{}", self.text(value))
    }

    /// Returns its value in one run; `None` if nothing was completed, so that silence never passes for speed.
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        if outcome.completed == 0 {
            return None;
        }
        let value = match self {
            Self::RequestsPerSecond => Some(outcome.requests_per_second),
            Self::P50Ms => outcome.latency.at(0.5),
            Self::P99Ms => outcome.latency.at(0.99),
            Self::BystanderP99Ms => outcome.bystander.as_ref()?.latency.at(0.99),
            Self::RecoveryMs => {
                let phase = outcome.phases.last()?;
                Some(1e3 * phase.in_time_after_s.unwrap_or(phase.seconds))
            }
        }?;
        Some(value).filter(|value| value.is_finite() && *value > 0.0)
    }
}

/// Returns whether only a lower bound of a percentile is known.
fn is_lower_bound(latency: &Latency, quantile: f64) -> bool {
    match latency.point(quantile) {
        Some(point) => point.is_lower_bound,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_printed_in_its_unit() {
        assert_eq!(Unit::Count.text(517.0), "517");
        assert_eq!(Unit::Seconds.text(0.256), "256 ms");
        assert_eq!(Unit::Bytes.text(16.0 * 1_048_576.0), "16 MiB");
        assert_eq!(Unit::Bytes.text(0.0), "0 bytes");
    }

    #[test]
    fn what_the_generator_does_not_measure_is_a_counter() {
        let of = |text: &str| Quantity::from(text.to_owned());
        assert_eq!(of("p99_ms"), Quantity::Metric(LoadMetric::P99Ms));
        assert_eq!(of("work_share_of_cpu_time"), Quantity::WorkShare);
        assert_eq!(of("process_threads").counter(), Some("process_threads"));
    }
}
