//! Thresholds of Little's law: when a mean time is believed.

/// Fewest requests that have to end for a mean time that is longer than the observation: fewer do not tell at which rate
/// requests end.
pub const FEWEST_ENDED: u64 = 20;
/// Largest mean time by Little's law that is believed, as a multiple of the longest timed request. A larger mean counts
/// requests that began before the observation.
pub const LIVED: f64 = 1.5;
