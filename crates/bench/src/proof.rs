//! The order of a proof: equal servers first, then problem and fix in
//! turn, then what is claimed in other scenarios, then the profiles in rounds of their own.

mod plan;

use measurement::profile::ProfileKind;
use measurement::record::Round;

pub use self::plan::planned_s;
use self::plan::{Step, in_turn, label, matrix_plan, plan};
use crate::profiling::ProfileData;
use crate::rounds::{Bench, Event, RunError};

/// What a proof yields; the record is built from it.
#[derive(Debug, Clone)]
pub struct Proof {
    /// Every round in the order in which it ran.
    pub rounds: Vec<Round>,
    /// Every profile with its data.
    pub profiles: Vec<ProfileData>,
    /// Whether every server was an optimised build.
    pub optimised: bool,
}

/// Measures the chapter's table; nothing for a chapter without one.
///
/// # Errors
///
/// As [`run`].
pub fn matrix(bench: &Bench<'_>) -> Result<Vec<Round>, RunError> {
    let steps = matrix_plan(bench.chapter);
    let total = steps.len();
    Ok(rounds(bench, &steps, total)?.0)
}

/// Runs a whole proof of the variant `fix` against the problem.
///
/// # Errors
///
/// When a server or the generator fails, or on Ctrl-C.
pub fn run(bench: &Bench<'_>, fix: &str) -> Result<Proof, RunError> {
    let steps = plan(bench.chapter, fix);
    let profiles: Vec<&str> = in_turn(fix, 1).collect();
    let total = steps.len() + profiles.len();
    let (rounds, optimised) = rounds(bench, &steps, total)?;
    let mut proof = Proof {
        rounds,
        profiles: Vec::new(),
        optimised,
    };
    for (number, variant) in profiles.into_iter().enumerate() {
        let label = format!("profiles of the {variant}");
        (bench.observer)(Event::Begins(steps.len() + number + 1, total, &label));
        let rounds = &bench.chapter.rounds;
        let wanted = [
            (ProfileKind::Cpu, rounds.cpu_profile_s),
            (ProfileKind::Await, rounds.await_profile_s),
        ];
        for (kind, seconds) in wanted {
            let data = bench.profile(variant, kind, seconds)?;
            let label = format!("{} profile of the {variant}", kind.key());
            (bench.observer)(Event::Profiled(&label, &data.most()));
            proof.profiles.push(data);
        }
    }
    Ok(proof)
}

/// One round after the other; also whether every server was an optimised build.
fn rounds(
    bench: &Bench<'_>,
    steps: &[Step<'_>],
    total: usize,
) -> Result<(Vec<Round>, bool), RunError> {
    let mut rounds = Vec::new();
    let mut all_optimised = true;
    for (number, step) in steps.iter().enumerate() {
        let label = label(step);
        (bench.observer)(Event::Begins(number + 1, total, &label));
        let (round, optimised) = bench.round(step.purpose, step.variant, step.scenario)?;
        (bench.observer)(Event::Measured(&label, round.outcome.requests_per_second));
        all_optimised &= optimised;
        rounds.push(round);
    }
    Ok((rounds, all_optimised))
}
