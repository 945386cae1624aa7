//! A cause, as it is told.

use serde::Serialize;

/// Something that holds requests up, or will.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// For programs: `blocked_worker`, `computing_worker`, `full_blocking_pool`, `unpolled`, `memory`, `tasks`,
    /// `connections`, `clients_connections`, `nagle`, `late`, `accept_queue`, `in_a_row`, `stuck`, or the kind of a wait.
    pub kind: &'static str,
    /// What was seen, what it means, and what to do.
    pub says: String,
    /// The endpoint that shows it.
    pub see: &'static str,
    /// The larger, the more likely this is what requests wait for: above 2 nothing else can go on, above 1 all that
    /// pass there wait.
    pub weight: f64,
}

impl Finding {
    /// A finding of this kind.
    pub fn new(kind: &'static str, weight: f64, see: &'static str, says: String) -> Self {
        Self {
            kind,
            says,
            see,
            weight,
        }
    }
}
