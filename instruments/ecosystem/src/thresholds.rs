//! Thresholds that the await profile's remarks and the rules of a diagnosis share: when a wait counts.

/// Smallest share of all requests in flight at which a place is listed.
pub const LISTED: f64 = 0.1;
/// Fewest waits of a request for the same thing, one after another, that are reported. One statement and its connection
/// make fewer.
pub const IN_A_ROW: f64 = 4.0;
/// Shortest mean time of the waits in a row, in milliseconds; shorter ones are reads of further parts of one answer.
pub const IN_A_ROW_MS: f64 = 0.5;
/// Requests that wait for several things at once (`join!`, `select!`): smallest share of one of these waits that can stand
/// for all, as a fraction of the largest share.
pub const PART_OF_SEVERAL: f64 = 0.25;
/// Fewest requests that have to end for a mean time that is longer than the observation: fewer do not tell at which rate
/// requests end.
pub const FEWEST_ENDED: u64 = 20;
/// Largest mean time by Little's law that is believed, as a multiple of the longest timed request. A larger mean counts
/// requests that began before the observation.
pub const LIVED: f64 = 1.5;
/// Fewest requests seen with futures that they do not poll; fewer may be chance.
pub const UNPOLLED_REQUESTS: u64 = 3;
