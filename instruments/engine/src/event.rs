//! What happens during a run, for whoever looks on.

use crate::load::Progress;

/// What happens, as it happens.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A round or a profile begins: number, of how many, what it is.
    Begins(usize, usize, &'a str),
    /// Load is on.
    Runs(Progress),
    /// A round ended: what it was, and its requests per second.
    Measured(&'a str, f64),
    /// A profile ended: what it was, and what it shows most of.
    Profiled(&'a str, &'a str),
    /// A sentence for whoever looks on.
    Said(&'a str),
}
