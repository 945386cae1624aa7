//! Thresholds that the await profile's remarks and the rules of a diagnosis share: when a wait counts.

/// Smallest share of all requests in flight at which a place is listed.
pub const LISTED: f64 = 0.1;
/// Waits in a row for the same thing, from which they are more than one statement and its connection.
pub const IN_A_ROW: f64 = 4.0;
/// Milliseconds of each wait in a row, below which the waits are for parts of one answer.
pub const IN_A_ROW_MS: f64 = 0.5;
/// Smallest share, of the most frequent one of several waits at once, of a wait that stands for all of them.
pub const PART_OF_SEVERAL: f64 = 0.25;
/// Fewest requests that ended, from which their rate is known well enough for a mean time that is longer than the look.
pub const FEWEST_ENDED: u64 = 20;
/// Largest mean time by Little's law, as a multiple of the longest time of a request that was timed: one above it is of
/// requests that began before the look.
pub const LIVED: f64 = 1.5;
/// Fewest requests seen with futures that they do not poll; fewer may be chance.
pub const UNPOLLED_REQUESTS: u64 = 3;
