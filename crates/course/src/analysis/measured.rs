//! The rounds that a claim is judged by.

use statistics::{Gains, Looks};

use crate::measurement::claim::Claim;
use crate::measurement::record::{Compared, Round};

/// Rounds and load that a claim is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'r> {
    /// The rounds, in the order in which they ran.
    pub rounds: &'r [&'r Round],
    /// Groups of these rounds that were measured together; `None` in place of others.
    pub compared: &'r [Option<Compared<'r>>],
    /// The variant that is compared with the problem.
    pub variant: &'r str,
    /// Simultaneous users.
    pub users: u32,
    /// Interim looks that the interval allows for.
    pub looks: Looks,
}

impl Measured<'_> {
    /// Returns whether no round of the fix has a reading of the claim's quantity. NaN counts as a reading.
    pub(super) fn is_silent_of(&self, claim: &Claim) -> bool {
        let mut own = self
            .rounds
            .iter()
            .filter(|round| round.variant == self.variant);
        own.all(|round| round.value(&claim.quantity).is_none())
    }
}

/// Collects the gains of rounds that were measured together; `None` if one lacks its figure.
pub fn gains(claim: &Claim, compared: &[Option<Compared<'_>>]) -> Option<Gains> {
    let mut gains = Gains::default();
    for together in compared {
        let (problem, fixes) = together.as_ref()?.figures(&claim.quantity)?;
        gains.add(&[problem], &fixes, claim.quantity.larger_is_better())?;
    }
    Some(gains)
}
