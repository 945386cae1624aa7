//! Do the load generators agree? At a load that none of them saturates on, a figure belongs to
//! the server and not to the instrument.

use serde::Serialize;

use measurement::{
    outcome::{GeneratorKind, Outcome},
    record::{Purpose, Round},
};

/// How far throughputs may lie apart, as a share of the embedded generator's.
pub const THROUGHPUT_WITHIN: f64 = 0.05;

/// How far median latencies may lie apart, as a share of the embedded generator's, unless chance
/// alone takes them further (the odds of so many of one sample lying above the other's median).
pub const MEDIAN_WITHIN: f64 = 0.10;

/// One generator beside the embedded one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Which.
    pub generator: GeneratorKind,
    /// Right requests per second.
    pub requests_per_second: f64,
    /// Median latency in ms.
    pub median_ms: Option<f64>,
    /// Throughput against the embedded generator's, 0 being equal.
    pub throughput_off: Option<f64>,
    /// Median latency against the embedded generator's, 0 being equal.
    pub median_off: Option<f64>,
    /// Whether both are near enough, without one failed or wrong answer.
    pub agrees: bool,
}

/// The program's own spelling.
pub fn name(kind: GeneratorKind) -> &'static str {
    match kind {
        GeneratorKind::Embedded => "the embedded generator",
        GeneratorKind::K6 => "k6",
        GeneratorKind::Locust => "Locust",
    }
}

/// Compares every round of this kind with the embedded generator's; empty without one.
pub fn compare(rounds: &[Round]) -> Vec<Compared> {
    let outcomes = rounds
        .iter()
        .filter(|round| round.purpose == Purpose::Agreement)
        .map(|round| &round.outcome);
    compare_outcomes(outcomes)
}

/// Compares every outcome of the same load with the embedded generator's; empty without one.
pub fn compare_outcomes<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<Compared> {
    let outcomes: Vec<&Outcome> = outcomes.into_iter().collect();
    let Some(own) = outcomes
        .iter()
        .find(|outcome| outcome.generator.name == GeneratorKind::Embedded)
    else {
        return Vec::new();
    };
    outcomes
        .iter()
        .map(|outcome| beside(outcome, own))
        .collect()
}

fn beside(outcome: &Outcome, own: &Outcome) -> Compared {
    let off = |value: f64, reference: f64| {
        let off = value / reference - 1.0;
        off.is_finite().then_some(off)
    };
    let median_ms = outcome.latency.at(0.5);
    let throughput_off = off(outcome.requests_per_second, own.requests_per_second);
    let median_off = median_ms
        .zip(own.latency.at(0.5))
        .and_then(|(median, reference)| off(median, reference));
    let near = |off: Option<f64>, within| off.is_some_and(|off| off.abs() <= within);
    Compared {
        generator: outcome.generator.name,
        requests_per_second: outcome.requests_per_second,
        median_ms,
        agrees: near(throughput_off, THROUGHPUT_WITHIN)
            && (near(median_off, MEDIAN_WITHIN) || by_chance(outcome, own))
            && outcome.error_count() == 0
            && outcome.wrong_answers == 0,
        throughput_off,
        median_off,
    }
}

/// Whether the medians of so few answers lie as far apart in 1 of 20 looks at the same thing. The
/// share of answers below a median of `n` has the standard deviation `0.5 / sqrt(n)`: with fifty
/// answers each they may lie a fifth of all ranks apart, with five thousand a fiftieth.
fn by_chance(outcome: &Outcome, own: &Outcome) -> bool {
    let count = |outcome: &Outcome| (outcome.completed as f64).max(1.0);
    let apart = 1.96 * 0.5 * (1.0 / count(outcome) + 1.0 / count(own)).sqrt();
    let at = |rank: f64| own.latency.at(rank.clamp(0.0, 1.0));
    let ranks = (outcome.latency.at(0.5), at(0.5 - apart), at(0.5 + apart));
    matches!(ranks, (Some(median), Some(low), Some(high)) if (low..=high).contains(&median))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, requests_per_second: f64, median_ms: f64) -> Outcome {
        serde_json::from_value(serde_json::json!({
            "generator": { "name": name, "version": "1", "cpu_share": 0.1, "users": 4, "open_loop": false },
            "seconds": 10.0,
            "completed": 100,
            "requests_per_second": requests_per_second,
            "errors": {},
            "wrong_answers": 0,
            "first_wrong_answer": null,
            "latency": {
                "mean_ms": median_ms, "min_ms": median_ms, "max_ms": median_ms,
                "quantiles": [[0.5, median_ms]],
            },
            "per_second": [],
        }))
        .unwrap()
    }

    fn agrees(own: &Outcome, other: &Outcome) -> bool {
        compare_outcomes([own, other])[1].agrees
    }

    #[test]
    fn near_is_near_enough_and_far_is_not() {
        let own = outcome("embedded", 100.0, 8.0);
        for (rate, median_ms, expected) in [
            (104.0, 8.7, true),
            (96.0, 7.3, true),
            (106.0, 8.0, false),
            (100.0, 8.9, false),
            (100.0, 7.1, false),
        ] {
            let other = outcome("k6", rate, median_ms);
            assert_eq!(agrees(&own, &other), expected, "{rate}, {median_ms}");
        }
    }

    #[test]
    fn a_fault_is_no_agreement() {
        let own = outcome("embedded", 100.0, 8.0);
        let (mut wrong, mut failed) = (own.clone(), own.clone());
        wrong.wrong_answers = 1;
        failed.errors.insert("status".to_owned(), 1);
        assert!(!agrees(&own, &wrong) && !agrees(&own, &failed));
    }

    #[test]
    fn few_answers_may_differ_by_chance() {
        for (completed, median_ms, expected) in [
            (48, 12.0, true),
            (48, 15.0, false),
            (4_800, 13.5, false),
            (48, 7.0, false),
        ] {
            let mut own = outcome("embedded", 100.0, 8.0);
            own.latency.quantiles = vec![(0.3, 7.9), (0.5, 8.0), (0.7, 13.0), (1.0, 14.0)];
            let mut other = outcome("locust", 100.0, median_ms);
            (own.completed, other.completed) = (completed, completed);
            assert_eq!(agrees(&own, &other), expected, "{completed}, {median_ms}");
        }
    }
}
