//! Profiles that were taken, without their stacks.

use serde::{Deserialize, Serialize};
use statistics::profile::ProfileKind;

/// One profile; its folded stacks stand beside the record, in [`Profile::folded_name`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The variant that served.
    pub variant: String,
    /// The instrument.
    pub kind: ProfileKind,
    /// Scenario of the load during the profile.
    pub scenario: String,
    /// Time of sampling, in seconds.
    pub seconds: f64,
    /// Samples taken: the sum over the folded stacks.
    pub samples: u64,
    /// Samples that fully busy CPUs would have given, by the CPU time used; the rest is
    /// drawn as `[idle]`.
    pub capacity: Option<u64>,
    /// Share (0 to 1) of the samples that have one of the law's frames on their stack; CPU profiles
    /// of chapters whose law asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_share: Option<f64>,
    /// The CPU time of a sample, a call, or whatever one sample stands for, as a phrase.
    pub unit: String,
}

impl Profile {
    /// Returns its name among the profiles of a record: `problem.cpu`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.variant, self.kind.key())
    }

    /// Returns the name of the file with its folded stacks, beside the record.
    pub fn folded_name(&self) -> String {
        self.name() + ".folded"
    }

    /// Returns the name of the file in dhat's format, beside the record.
    pub fn dhat_name(&self) -> String {
        self.name() + ".json"
    }

    /// Returns the number of samples in which the CPUs had nothing to do.
    pub fn idle(&self) -> u64 {
        self.capacity.unwrap_or(0).saturating_sub(self.samples)
    }
}
