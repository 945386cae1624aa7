//! Everything that one proof recorded: `capture.json`. Tables, plots, report
//! and verdict are derived from it and from nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    chapter_file::ChapterFile,
    claim::{PROBLEM, SOLUTION},
    environment::Environment,
    instructions::Instructions,
    outcome::Outcome,
    profile::Profile,
    reference::Published,
};

/// One proof run of one chapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The layout of this record: [`Record::FORMAT`].
    pub format: u32,
    /// The command that repeats it.
    pub command: String,
    /// When it began, UTC, as `2026-11-20T20:30:00Z`.
    pub started: String,
    /// The code that was measured.
    pub commit: Commit,
    /// The machine that measured it.
    pub environment: Environment,
    /// What every random choice was derived from.
    pub seed: u64,
    /// SHA-256 of the `chapter.toml`, to tell a capture of older claims.
    pub chapter_file_digest: String,
    /// The claims as they stood.
    pub chapter: ChapterFile,
    /// Figures published elsewhere, as they stood.
    pub references: Vec<Published>,
    /// Every round, in the order in which they ran.
    pub rounds: Vec<Round>,
    /// Profiles taken beside the rounds.
    pub profiles: Vec<Profile>,
    /// Instructions counted beside them, where the chapter asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instructions>,
}

/// The commit that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its hash, or `unknown` outside a git checkout.
    pub hash: String,
    /// Whether tracked files differed from it.
    pub dirty: bool,
}

impl Commit {
    /// Twelve characters of the hash, and whether files differed.
    pub fn in_short(&self) -> String {
        let short = self.hash.get(..12).unwrap_or(&self.hash);
        let changed = if self.dirty { " with changes" } else { "" };
        format!("{short}{changed}")
    }
}

/// Why a round was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// One of a pair on two equal servers (A/A): how far noise alone goes.
    Equal,
    /// One of a pair, problem and solution (ABBA): the effect.
    Effect,
    /// How near the variant comes to the law's bound.
    Bound,
    /// The same load by another generator: do the instruments agree?
    Agreement,
    /// One of a pair (ABBA) in another setting of the law.
    Point,
    /// The mechanism's own round, on a build that counts.
    Mechanism,
    /// A cell of the chapter's table.
    Matrix,
    /// What the law predicts from.
    Law,
    /// Connections over time.
    Series,
    /// Another program that does the same work, beside the solution.
    Yardstick,
}

/// One server under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Why it was run.
    pub purpose: Purpose,
    /// The variant that served.
    pub variant: String,
    /// The setting of the load: a key of the chapter's `[settings]`, or `load`.
    pub setting: String,
    /// What the generator saw.
    pub outcome: Outcome,
    /// What the server counted meanwhile, by its name on `/metrics`.
    pub readings: BTreeMap<String, f64>,
    /// Processor time that the server used under the load, warm-up included, in seconds.
    pub server_cpu_s: Option<f64>,
    /// Answers that it gave for that time; `None` in records from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_answers: Option<u64>,
    /// Time for which a quota held the run back, in seconds.
    pub throttled_s: Option<f64>,
    /// Start of the server to end of the load, in seconds.
    pub wall_s: f64,
    /// Connections over time, of rounds that were run for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionsAt>,
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
    /// Whether the verdict rests on it, too. The rounds of other generators and those of the
    /// chapter's table only stand beside it.
    pub fn is_judged(&self) -> bool {
        !matches!(
            self.purpose,
            Purpose::Agreement | Purpose::Matrix | Purpose::Series | Purpose::Yardstick
        )
    }
}

impl Record {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 1;

    /// The rounds of one purpose, in the order in which they ran.
    pub fn rounds_for(&self, purpose: Purpose) -> impl Iterator<Item = &Round> {
        self.rounds
            .iter()
            .filter(move |round| round.purpose == purpose)
    }
}

/// Problem and solution of every two rounds that followed each other, whichever ran first; `None`
/// in place of two that are not one of each.
pub fn pairs<'r>(rounds: &[&'r Round]) -> Vec<Option<(&'r Round, &'r Round)>> {
    let of = |two: &[&'r Round]| match (two[0].variant.as_str(), two[1].variant.as_str()) {
        (PROBLEM, SOLUTION) => Some((two[0], two[1])),
        (SOLUTION, PROBLEM) => Some((two[1], two[0])),
        _ => None,
    };
    rounds.chunks_exact(2).map(of).collect()
}
