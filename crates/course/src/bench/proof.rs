//! The order of a proof: what is measured once; then problem, fix and the fix again in triplets until
//! it is decided; then the profiles, in rounds of their own.

mod plan;

use crate::measurement::claim::PROBLEM;
use crate::measurement::record::{Purpose, Round};
use engine::profile::ProfileKind;

pub use self::plan::planned_s;
use self::plan::{Step, beforehand, label, matrix_plan, triplets};
use crate::bench::profiling::ProfileData;
use crate::bench::rounds::{Bench, RunError};
use engine::event::Event;

/// Shares of the machine's CPU time, used elsewhere, that lie further apart than this make the rounds
/// of a triplet unequal.
const UNEQUAL: f64 = 0.1;

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
    let mut proof = Proof::new();
    let steps = matrix_plan(bench.chapter);
    proof.measure(bench, &steps, steps.len())?;
    Ok(proof.rounds)
}

/// Measures the variant `fix` against the problem, until `is_decided` says so or the chapter's most
/// triplets are there. No server serves two rounds: a process keeps its luck, which more rounds of
/// the same would not mend.
///
/// # Errors
///
/// When a server or the generator fails, or on Ctrl-C.
pub fn run(
    bench: &Bench<'_>,
    fix: &str,
    is_decided: &dyn Fn(&Proof) -> bool,
) -> Result<Proof, RunError> {
    let mut proof = Proof::new();
    let before = beforehand(bench.chapter, fix);
    let total = before.len() + 3 * bench.chapter.rounds.pairs as usize;
    proof.measure(bench, &before, total)?;
    let (most, mut kept, mut disturbed) = (bench.chapter.rounds.pairs, 0, 0);
    for triplet in triplets(bench.chapter, fix) {
        proof.measure(bench, &triplet, total)?;
        if disturbed < most / 2 && proof.sets_aside_the_last_triplet() {
            disturbed += 1;
            let again = "other programs used the machine in one of these three rounds more than in \
                         another: they are measured again";
            (bench.observer)(Event::Said(again));
            continue;
        }
        kept += 1;
        if kept == most || is_decided(&proof) {
            break;
        }
    }
    Ok(proof)
}

impl Proof {
    fn new() -> Self {
        Self {
            rounds: Vec::new(),
            profiles: Vec::new(),
            optimised: true,
        }
    }

    /// Whether others used the machine in one of the last three rounds and not in another. That alone
    /// decides, and never what was measured: to leave out what looks bad would prove anything.
    fn sets_aside_the_last_triplet(&mut self) -> bool {
        let from = self.rounds.len().saturating_sub(3);
        let last = &mut self.rounds[from..];
        let shares = last.iter().filter_map(|round| round.elsewhere_share);
        let (low, high) = shares.fold((1.0, 0.0), |(low, high): (f64, f64), share| {
            (low.min(share), high.max(share))
        });
        let is_disturbed = high - low > UNEQUAL;
        if is_disturbed {
            for round in last {
                round.purpose = Purpose::Disturbed;
            }
        }
        is_disturbed
    }

    /// Takes a CPU and an await profile of problem and fix.
    ///
    /// # Errors
    ///
    /// As [`run`].
    pub fn profile_both(&mut self, bench: &Bench<'_>, fix: &str) -> Result<(), RunError> {
        for variant in [PROBLEM, fix] {
            for kind in [ProfileKind::Cpu, ProfileKind::Await] {
                self.profile(bench, variant, kind)?;
            }
        }
        Ok(())
    }

    fn profile(
        &mut self,
        bench: &Bench<'_>,
        variant: &str,
        kind: ProfileKind,
    ) -> Result<(), RunError> {
        let rounds = &bench.chapter.rounds;
        let seconds = match kind {
            ProfileKind::Cpu => rounds.cpu_profile_s,
            _ => rounds.await_profile_s,
        };
        let data = bench.profile(variant, kind, seconds)?;
        let label = format!("{} profile of the {variant}", kind.key());
        (bench.observer)(Event::Profiled(&label, &data.most()));
        self.profiles.push(data);
        Ok(())
    }

    /// One round after the other, of `total` at most that are not set aside.
    fn measure(
        &mut self,
        bench: &Bench<'_>,
        steps: &[Step<'_>],
        total: usize,
    ) -> Result<(), RunError> {
        for step in steps {
            let label = label(step);
            let is_kept = |round: &&Round| round.purpose != Purpose::Disturbed;
            let before = self.rounds.iter().filter(is_kept).count();
            (bench.observer)(Event::Begins(before + 1, total, &label));
            let (round, optimised) = bench.round(step.purpose, step.variant, step.scenario)?;
            let per_second = round.outcome.requests_per_second;
            (bench.observer)(Event::Measured(&label, per_second));
            self.optimised &= optimised;
            self.rounds.push(round);
        }
        Ok(())
    }
}
