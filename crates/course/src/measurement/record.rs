//! Everything that one proof recorded: `capture.json`. Tables, plots, report
//! and verdict are derived from it and from nothing else.

use std::collections::BTreeMap;
use std::fmt;

use children::environment::Environment;
use serde::{Deserialize, Serialize};
use statistics::Looks;

use crate::measurement::{
    chapter_file::ChapterFile,
    claim::{Claim, PROBLEM, Quantity, Role, WORK_CPU},
    reference::Published,
};
use drawing::profile::Profile;
use engine::outcome::Outcome;

/// One proof run of one chapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The layout of this record: [`Record::FORMAT`].
    pub format: u32,
    /// The command that repeats it.
    pub command: String,
    /// Moment at which it began, UTC, as `2026-11-20T20:30:00Z`.
    pub started: String,
    /// The code that was measured.
    pub inputs: Inputs,
    /// The variant that is compared with the problem.
    pub variant: String,
    /// The machine that measured it.
    pub environment: Environment,
    /// The claims as they stood.
    pub chapter: ChapterFile,
    /// Figures published elsewhere, as they stood.
    pub references: Vec<Published>,
    /// Every round, in the order in which they ran.
    pub rounds: Vec<Round>,
    /// Profiles taken beside the rounds.
    pub profiles: Vec<Profile>,
}

/// The code that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Inputs {
    /// SHA-256 of everything that decides the figures, as `bench::provenance` computes it.
    Digest(String),
    /// All that older records say: the commit, and whether tracked files differed from it.
    Commit {
        /// Its hash.
        hash: String,
        /// `true` if they differed.
        dirty: bool,
    },
}

impl Inputs {
    /// Digits of a digest in the line below a table.
    pub const SHOWN: usize = 12;
}

impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, after) = match self {
            Self::Digest(_) => ("with inputs", ""),
            Self::Commit { dirty: false, .. } => ("at commit", ", inputs not recorded"),
            Self::Commit { dirty: true, .. } => ("near commit", ", inputs not recorded"),
        };
        let (Self::Digest(hash) | Self::Commit { hash, .. }) = self;
        let short = hash.get(..Self::SHOWN).unwrap_or(hash);
        write!(f, "{of} {short}{after}")
    }
}

/// Purpose of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The fix again, beside the fix (A/A): how far noise alone goes.
    Equal,
    /// One of a pair, problem and fix, in a scenario in which something is claimed.
    Claim,
    /// A root cause's own round, where it is counted in another scenario or on another build.
    RootCause,
    /// A cell of the chapter's table.
    Matrix,
    /// A round that the law predicts from.
    Law,
    /// Connections over time.
    Series,
    /// Another program that does the same work, beside the solution.
    Baseline,
    /// Set aside, because others used the machine in one round of its triplet and not in another.
    Disturbed,
}

/// One server under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its purpose.
    pub purpose: Purpose,
    /// The variant that served.
    pub variant: String,
    /// The scenario of the load: a key of the chapter's `[scenarios]`, or `load`.
    pub scenario: String,
    /// Seed of the load's random moments. The three rounds of a triplet have the same, and another triplet has another.
    /// Older records lack it: all of their rounds had seed 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u64,
    /// Outcome at the generator.
    pub outcome: Outcome,
    /// Counters of the server, by their names on `/metrics`.
    pub readings: BTreeMap<String, f64>,
    /// CPU time that the server used under the load, warm-up included, in seconds.
    pub server_cpu_s: Option<f64>,
    /// Time for which a quota held the run back, in seconds.
    pub throttled_s: Option<f64>,
    /// Share (0 to 1) of the machine's CPU time that other programs used during the round. `None` where the
    /// system does not report it, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere_share: Option<f64>,
    /// Start of the server to end of the load, in seconds.
    pub wall_s: f64,
    /// Connections over time, of rounds that were run for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionsAt>,
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(seed: &u64) -> bool {
    *seed == 0
}

/// Connections of a server, counted at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionsAt {
    /// Seconds since the load began.
    pub s: f64,
    /// Accepted so far.
    pub accepted: u64,
    /// Ended so far.
    pub finished: u64,
}

impl Round {
    /// Returns the value of a quantity in this round; `None` if it was not measured.
    pub fn value(&self, quantity: &Quantity) -> Option<f64> {
        match quantity {
            Quantity::Metric(metric) => metric.of(&self.outcome),
            Quantity::BystanderShare => {
                let bystander = self.outcome.bystander.as_ref()?;
                Some(bystander.latency.at(0.5)? / self.outcome.latency.at(0.5)?)
            }
            Quantity::WorkShare => Some(self.readings.get(WORK_CPU)? / self.server_cpu_s?),
            Quantity::Counter(name) => self.readings.get(name).copied(),
        }
    }

    /// Returns whether the round lacks the figure that its claim is about, and a lack of time may be the only
    /// cause. `effect` is the quantity of the chapter's effect.
    pub fn is_silent(&self, effect: &Quantity) -> bool {
        let is_faulty = self.outcome.wrong_answers > 0 || self.outcome.error_count() > 0;
        let is_about_effect =
            matches!(self.purpose, Purpose::Claim | Purpose::Equal | Purpose::Law);
        let lacks_figure = is_about_effect && self.value(effect).is_none();
        !is_faulty && (self.outcome.completed == 0 || lacks_figure)
    }

    /// Returns whether a root cause in the round's scenario misses the bound of a fix.
    pub fn misses_a_bound(&self, chapter: &ChapterFile) -> bool {
        for claim in chapter.claims.of(Role::RootCause) {
            if claim.scenario() != self.scenario || !claim.is_checked() {
                continue;
            }
            if let (Some(bound), Some(reading)) = (claim.solution, self.value(&claim.quantity))
                && !bound.holds(reading, chapter.users(&self.scenario))
            {
                return true;
            }
        }
        false
    }

    /// Returns whether the value of `quantity` in this round is a lower bound.
    pub fn is_at_least(&self, quantity: &Quantity) -> bool {
        match quantity {
            Quantity::Metric(metric) => metric.is_at_least(&self.outcome),
            Quantity::WorkShare | Quantity::BystanderShare | Quantity::Counter(_) => false,
        }
    }

    /// Returns whether the verdict rests on this round. It does not rest on disturbed rounds and baselines,
    /// nor on rounds for the table or the plot of connections.
    pub fn is_judged(&self) -> bool {
        !matches!(
            self.purpose,
            Purpose::Matrix | Purpose::Series | Purpose::Baseline | Purpose::Disturbed
        )
    }
}

impl Record {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 2;

    /// Reads a record from its JSON.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON, or not that of a record.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Returns the rounds of one purpose, in the order in which they ran.
    pub fn rounds_for(&self, purpose: Purpose) -> impl Iterator<Item = &Round> {
        self.rounds
            .iter()
            .filter(move |round| round.purpose == purpose)
    }

    /// Returns the rounds of problem and fix in one scenario, in the order in which they ran, those of the
    /// fix again among them.
    pub fn claimed_in(&self, scenario: &str) -> Vec<&Round> {
        let mut rounds: Vec<&Round> = self.rounds.iter().collect();
        rounds.retain(|round| {
            matches!(round.purpose, Purpose::Claim | Purpose::Equal) && round.scenario == scenario
        });
        rounds
    }

    /// Returns the rounds by which the effect is judged.
    pub fn effect_rounds(&self) -> Vec<&Round> {
        self.claimed_in(self.chapter.claims.effect().scenario())
    }

    /// Returns the looks at the rounds of a scenario: repeated ones for the effect's scenario, a single one
    /// for the others.
    pub fn looks_at(&self, scenario: &str) -> Looks {
        if scenario == self.chapter.claims.effect().scenario() {
            self.chapter.looks()
        } else {
            Looks::ONCE
        }
    }

    /// Returns the number of triplets (problem, fix and fix again) in the effect's scenario.
    pub fn triplets(&self) -> u32 {
        u32::try_from(self.effect_rounds().len() / 3).unwrap_or(u32::MAX)
    }

    /// Returns the rounds by which a claim is judged: its own if it is counted apart, otherwise those of its scenario.
    pub fn rounds_of(&self, claim: &Claim) -> Vec<&Round> {
        let own: Vec<&Round> = match claim.role {
            Role::RootCause => self
                .rounds_for(Purpose::RootCause)
                .filter(|round| round.scenario == claim.scenario())
                .collect(),
            _ => Vec::new(),
        };
        if own.is_empty() {
            self.claimed_in(claim.scenario())
        } else {
            own
        }
    }

    /// Groups `rounds` that were measured together: problem and fix, or problem, fix and fix again. A group
    /// of anything else becomes `None`.
    pub fn compared<'r>(&self, rounds: &[&'r Round]) -> Vec<Option<Compared<'r>>> {
        let mut size = 2;
        for round in rounds {
            if round.purpose == Purpose::Equal {
                size = 3;
            }
        }
        let mut compared = Vec::new();
        for group in rounds.chunks_exact(size) {
            let (problem, fixes): (Vec<&'r Round>, Vec<&'r Round>) =
                group.iter().partition(|round| round.variant == PROBLEM);
            let are_of_one = fixes.iter().all(|fix| fix.variant == self.variant);
            compared.push(match problem[..] {
                [problem] if are_of_one => Some(Compared { problem, fixes }),
                _ => None,
            });
        }
        compared
    }
}

/// Rounds that were measured together.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared<'r> {
    /// The problem's.
    pub problem: &'r Round,
    /// The fix's: one, or two of equal servers.
    pub fixes: Vec<&'r Round>,
}

impl Compared<'_> {
    /// Returns each round's figure of `quantity`: the problem's, and the fix's; `None` if one lacks it.
    pub fn figures(&self, quantity: &Quantity) -> Option<(f64, Vec<f64>)> {
        let fixes = self.fixes.iter().map(|fix| fix.value(quantity));
        Some((self.problem.value(quantity)?, fixes.collect::<Option<_>>()?))
    }
}
