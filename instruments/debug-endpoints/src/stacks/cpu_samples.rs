//! Samples of the CPU time of all threads, before their addresses have names.

use std::time::{Duration, SystemTime};

use diagnosis::threads::CpuMoment;

/// The samples of one profile.
pub(crate) struct Sampled {
    pub(crate) stacks: Vec<Stack>,
    /// The samples in the order in which they were taken.
    pub(crate) moments: Vec<CpuMoment>,
    pub(crate) began: SystemTime,
    pub(crate) duration: Duration,
    /// CPU time of the process in this time.
    pub(crate) cpu_time: Duration,
    /// Samples a second of CPU time.
    pub(crate) frequency: u32,
    /// Sentences that a reader has to know, if any.
    pub(crate) notes: Vec<String>,
    /// Samples that are missing for the CPU time that threads used; 0 if these are few.
    pub(crate) unseen: u64,
    /// A sentence on them.
    pub(crate) why_unseen: Option<String>,
}

/// One stack: its thread by name and number, its addresses from the innermost outwards, and its number of samples.
pub(crate) struct Stack {
    pub(crate) thread: String,
    pub(crate) tid: i32,
    pub(crate) addresses: Vec<usize>,
    pub(crate) samples: u64,
}
