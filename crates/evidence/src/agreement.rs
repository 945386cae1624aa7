//! Do the load generators agree? At a load that none of them saturates on, a
//! figure belongs to the server and not to the instrument.

use std::panic::resume_unwind;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::claim::SOLUTION;
use crate::drivers::{self, DriverError, k6, locust};
use crate::load::Load;
use crate::outcome::{GeneratorKind, Outcome};
use crate::proof::{Bench, Event, ProofError};
use crate::record::{Purpose, Round};
use crate::server::Server;

/// How far throughputs may lie apart, as a share of the embedded generator's.
pub const THROUGHPUT_WITHIN: f64 = 0.05;
/// How far median latencies may lie apart, as a share of the embedded generator's, unless chance
/// alone takes them further (the odds of so many of one sample lying above the other's median).
pub const MEDIAN_WITHIN: f64 = 0.10;

/// The external generators and their scripts.
#[derive(Debug, Clone, Copy)]
pub struct External<'a> {
    /// The k6 executable.
    pub k6: &'a Path,
    /// The chapter's k6 script.
    pub k6_script: &'a Path,
    /// The Locust executable.
    pub locust: &'a Path,
    /// The chapter's Locust file.
    pub locust_file: &'a Path,
}

/// Why no agreement could be measured.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// Server or embedded generator.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// k6 or Locust.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// One generator beside the embedded one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Which.
    pub generator: GeneratorKind,
    /// Right answers a second.
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

/// Has the three generators look at the same solution at the same time, each with a third of the
/// chapter's load. One after the other they would see what the machine did to the service
/// meanwhile, which on a machine with neighbours is more than they differ by.
///
/// # Errors
///
/// When a server or a generator fails, a tool is missing, or on Ctrl-C.
pub fn measure(
    bench: &Bench<'_>,
    external: &External<'_>,
    duration: Duration,
) -> Result<Vec<Round>, AgreementError> {
    together(bench, external, SOLUTION, Beside::Embedded, duration)
}

/// Puts half of the chapter's load on `variant` by k6 and half by Locust, whose exit codes say
/// what their scripts' thresholds think of it.
///
/// # Errors
///
/// As [`measure`].
pub fn scripts(
    bench: &Bench<'_>,
    external: &External<'_>,
    variant: &str,
    duration: Duration,
) -> Result<Vec<Round>, AgreementError> {
    together(bench, external, variant, Beside::Nothing, duration)
}

/// What runs beside k6 and Locust.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Embedded,
    Nothing,
}

fn together(
    bench: &Bench<'_>,
    external: &External<'_>,
    variant: &str,
    beside: Beside,
    duration: Duration,
) -> Result<Vec<Round>, AgreementError> {
    let whole = bench.chapter.load_of(&bench.chapter.load);
    let (generators, label) = match beside {
        Beside::Embedded => (3, "all three generators"),
        Beside::Nothing => (2, "k6 and Locust"),
    };
    let mut load = Load {
        users: (whole.users / generators).max(1),
        duration,
        ..whole
    };
    if let Some(probe) = &mut load.probe {
        // k6 takes whole numbers.
        probe.per_second = (probe.per_second / f64::from(generators)).floor().max(1.0);
    }
    let label = format!("{variant} under the load of {label}");
    (bench.observer)(Event::Begins(1, 1, &label));
    let mut outcomes = Vec::new();
    let (round, _) = bench.round_by(Purpose::Agreement, variant, "load", |server| {
        outcomes = side_by_side(bench, external, server, &load, beside)?;
        Ok::<_, AgreementError>(outcomes[0].clone())
    })?;
    let sum = outcomes.iter().map(|outcome| outcome.requests_per_second);
    (bench.observer)(Event::Measured(&label, sum.sum()));
    let of = |outcome| Round {
        outcome,
        ..round.clone()
    };
    Ok(outcomes.into_iter().map(of).collect())
}

/// Python starts, and then the users in batches of a second. The others wait for that, so that all
/// record the same time: where the processor is full, what one of them leaves the others take.
const LOCUST_IS_LATER: Duration = Duration::from_secs(2);

/// Long enough for the lower quartile of some answers with nobody else there.
const ALONE: Duration = Duration::from_secs(2);

/// What each generator saw of `server`, the embedded one first.
fn side_by_side(
    bench: &Bench<'_>,
    external: &External<'_>,
    server: &Server,
    load: &Load,
    beside: Beside,
) -> Result<Vec<Outcome>, AgreementError> {
    let (processors, interrupt) = (&bench.placement.generator, bench.interrupt);
    let alone = alone(bench, server)?;
    let settings = |program, script| drivers::Settings {
        program,
        script,
        processors,
        alone,
        interrupt,
    };
    let target = server.service();
    let k6 = settings(external.k6, external.k6_script);
    let locust = settings(external.locust, external.locust_file);
    std::thread::scope(|scope| {
        let tools = [
            scope.spawn(move || {
                std::thread::sleep(LOCUST_IS_LATER);
                k6::run(target, load, &k6)
            }),
            scope.spawn(move || locust::run(target, load, &locust)),
        ];
        let mut outcomes = Vec::new();
        if beside == Beside::Embedded {
            std::thread::sleep(LOCUST_IS_LATER);
            outcomes.push(bench.drive(server, load).map_err(ProofError::from)?);
        }
        for tool in tools {
            let ended = tool.join().unwrap_or_else(|panic| resume_unwind(panic));
            outcomes.push(ended?);
        }
        Ok(outcomes)
    })
}

/// What an answer takes with nobody else there, if the chapter's scripts compare with it. Left to
/// find it out themselves, they would ask beside each other and begin the later for it.
fn alone(bench: &Bench<'_>, server: &Server) -> Result<Option<Duration>, ProofError> {
    if bench.chapter.times_alone.is_none() {
        return Ok(None);
    }
    let mut load = bench.chapter.load_of(&bench.chapter.load);
    (load.users, load.warm_up, load.duration) = (1, Duration::ZERO, ALONE);
    let outcome = bench.drive(server, &load)?;
    let quartile = outcome.latency.at(0.25);
    Ok(quartile.map(|ms| Duration::from_secs_f64(ms / 1000.0)))
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

    fn agrees(name: &str, requests_per_second: f64, median_ms: f64) -> bool {
        let own = outcome("embedded", 100.0, 8.0);
        let other = outcome(name, requests_per_second, median_ms);
        compare_outcomes([&own, &other])[1].agrees
    }

    #[test]
    fn near_is_near_enough_and_far_is_not() {
        assert!(agrees("k6", 104.0, 8.7));
        assert!(agrees("k6", 96.0, 7.3));
        assert!(!agrees("k6", 106.0, 8.0));
        assert!(!agrees("k6", 100.0, 8.9));
        assert!(!agrees("k6", 100.0, 7.1));
    }

    #[test]
    fn a_fault_is_no_agreement() {
        let own = outcome("embedded", 100.0, 8.0);
        let mut other = own.clone();
        other.wrong_answers = 1;
        assert!(!compare_outcomes([&own, &other])[1].agrees);
        other.wrong_answers = 0;
        other.errors.insert("status".to_owned(), 1);
        assert!(!compare_outcomes([&own, &other])[1].agrees);
    }

    #[test]
    fn few_answers_may_differ_by_chance() {
        let wide = |completed| {
            let mut own = outcome("embedded", 100.0, 8.0);
            own.completed = completed;
            own.latency.quantiles = vec![(0.3, 7.9), (0.5, 8.0), (0.7, 13.0), (1.0, 14.0)];
            own
        };
        let agrees = |completed, median| {
            let mut other = outcome("locust", 100.0, median);
            other.completed = completed;
            compare_outcomes([&wide(completed), &other])[1].agrees
        };
        assert!(agrees(48, 12.0));
        assert!(!agrees(48, 15.0));
        assert!(!agrees(4_800, 13.5));
        assert!(!agrees(48, 7.0));
    }
}
