//! Do the load generators agree? At a load that none of them saturates on, a
//! figure belongs to the server and not to the instrument.

use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

use crate::claim::SOLUTION;
use crate::drivers::{self, DriverError, k6, locust};
use crate::outcome::{GeneratorKind, Outcome};
use crate::proof::{Bench, Event, ProofError};
use crate::record::{Purpose, Round};

/// How far throughputs may lie apart, as a share of the embedded generator's.
pub const THROUGHPUT_WITHIN: f64 = 0.05;
/// How far median latencies may lie apart, as a share of the embedded generator's.
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

impl AgreementError {
    /// Whether it was Ctrl-C.
    pub fn is_interrupt(&self) -> bool {
        match self {
            Self::Proof(error) => error.is_interrupt(),
            Self::Driver(error) => matches!(error, DriverError::Interrupted),
        }
    }
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

/// Puts the chapter's own load on its solution by each of the three generators.
///
/// # Errors
///
/// When a server or a generator fails, a tool is missing, or on Ctrl-C.
pub fn measure(bench: &Bench<'_>, external: &External<'_>) -> Result<Vec<Round>, AgreementError> {
    let load = bench.chapter.load_of(&bench.chapter.load);
    let settings = |program, script| drivers::Settings {
        program,
        script,
        processors: &bench.placement.generator,
        interrupt: bench.interrupt,
    };
    let kinds = [
        GeneratorKind::Embedded,
        GeneratorKind::K6,
        GeneratorKind::Locust,
    ];
    let mut rounds = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let label = format!("{SOLUTION} under the load of {}", name(kind));
        (bench.observer)(Event::Begins(number + 1, kinds.len(), &label));
        let round = bench.round_by(Purpose::Agreement, SOLUTION, "load", |server| {
            let target: SocketAddr = server.service();
            Ok::<_, AgreementError>(match kind {
                GeneratorKind::Embedded => bench.drive(server, &load).map_err(ProofError::from)?,
                GeneratorKind::K6 => {
                    k6::run(target, &load, &settings(external.k6, external.k6_script))?
                }
                GeneratorKind::Locust => {
                    let settings = settings(external.locust, external.locust_file);
                    locust::run(target, &load, &settings)?
                }
            })
        })?;
        (bench.observer)(Event::Measured(&label, round.0.outcome.requests_per_second));
        rounds.push(round.0);
    }
    Ok(rounds)
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
            && near(median_off, MEDIAN_WITHIN)
            && outcome.error_count() == 0
            && outcome.wrong_answers == 0,
        throughput_off,
        median_off,
    }
}
