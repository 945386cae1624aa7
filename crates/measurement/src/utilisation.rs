//! How much of the CPU time that a server was given it has to put into the work itself.

use serde::{Deserialize, Serialize};

/// The table `[utilised]` of `chapter.toml`: how near to the utilisation law's bound the solution
/// comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilised {
    /// The claimed share (0 to 1) of the bound, which is the processor time that the server was
    /// really given, divided by what a request takes of it in the problem.
    pub at_least_share: f64,
}
