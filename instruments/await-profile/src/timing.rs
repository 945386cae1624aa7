//! Uses of a request's time.

/// Use of a request's time, if it is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// For nothing: its beginning was not seen.
    Nothing,
    /// For the latency of its route.
    Latency,
    /// For the same, and for the profile that is being taken.
    Profile,
    /// For the tail profile that is being taken, and no more: the latency of its route is of every sixteenth.
    Tail,
}
