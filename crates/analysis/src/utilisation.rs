//! How much of the processor time that a server was given it put into the work itself.

use serde::{Deserialize, Serialize};

use crate::{share, statistics};
use measurement::{
    chapter_file::WORK_CPU,
    claim::{PROBLEM, SOLUTION},
    record::{Purpose, Record, Round, pairs},
};

/// How near it came.
///
/// A request takes what the law calls its service demand: the work, and what is needed to receive
/// and to answer it. The latter depends on the machine and on what else runs there, so it is not
/// assumed but read off the problem's round beside each of the solution's (P. J. Denning and
/// J. P. Buzen, "The Operational Analysis of Queueing Network Models", 1978: demand is busy time
/// divided by completions).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UtilisedFinding {
    /// Throughput against the bound (1 is all of it): the median of the pairs; `None` where a round
    /// does not tell.
    pub share: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// The same where the mechanism was counted, if that has rounds of its own.
    pub while_counted: Option<f64>,
    /// The share of its processor time that the problem put into the work: the median of its rounds.
    pub problem: Option<f64>,
    /// The same of the solution.
    pub solution: Option<f64>,
    /// The claimed share of the bound.
    pub claimed: f64,
}

impl UtilisedFinding {
    /// `None` for a chapter without `[utilised]`.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let claim = record.chapter.utilised.as_ref()?;
        let rounds: Vec<&Round> = record.rounds_for(Purpose::Effect).collect();
        let counted: Vec<&Round> = record.rounds_for(Purpose::Mechanism).collect();
        let shares = of_the_bound(&rounds);
        let median = |shares: Option<Vec<f64>>| statistics::median_ratio(&shares?);
        let (share, interval) = share::of_pairs(shares.as_deref(), record.seed);
        Some(Self {
            share,
            interval,
            while_counted: median(of_the_bound(&counted)),
            problem: median(into_the_work_by(PROBLEM, &rounds)),
            solution: median(into_the_work_by(SOLUTION, &rounds)),
            claimed: claim.at_least_share,
        })
    }

    /// What the solution lacks of its claim: the whole interval has to lie above it.
    pub(crate) fn shortfall(&self) -> Option<String> {
        let reached = (
            "reached",
            "the utilisation law's bound for the processor time given",
        );
        share::shortfall(reached, self.share, self.interval, self.claimed)
    }
}

/// The solution's share of the bound in each pair. The work is taken by the processor time that its
/// threads measured, not by the piece, since neighbours can make a piece take longer.
fn of_the_bound(rounds: &[&Round]) -> Option<Vec<f64>> {
    let of_pair = |pair: Option<(&Round, &Round)>| {
        let (problem, solution) = pair?;
        Some(into_the_work(solution)? / into_the_work(problem)?)
    };
    pairs(rounds).into_iter().map(of_pair).collect()
}

fn into_the_work_by(variant: &str, rounds: &[&Round]) -> Option<Vec<f64>> {
    rounds
        .iter()
        .filter(|round| round.variant == variant)
        .map(|round| into_the_work(round))
        .collect()
}

fn into_the_work(round: &Round) -> Option<f64> {
    Some(round.readings.get(WORK_CPU)? / round.server_cpu_s?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(interval: Option<(f64, f64)>) -> UtilisedFinding {
        UtilisedFinding {
            share: Some(0.97),
            interval,
            while_counted: None,
            problem: Some(0.98),
            solution: Some(0.95),
            claimed: 0.95,
        }
    }

    #[test]
    fn the_whole_interval_has_to_lie_above_the_claim() {
        assert_eq!(finding(Some((0.95, 0.99))).shortfall(), None);
        for (interval, words) in [
            (Some((0.94, 0.99)), "interval from 94 %"),
            (Some((f64::NAN, 0.99)), "from nowhere"),
            (None, "from nowhere"),
        ] {
            let said = finding(interval).shortfall().expect("it falls short");
            assert!(said.contains(words), "{said}");
        }
    }
}
