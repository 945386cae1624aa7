//! Events of a run, for its observer.

use crate::load::Progress;

/// Event of a run, reported as it happens.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A round or a profile begins: its number, the number of all, and its name.
    Begins(usize, usize, &'a str),
    /// The load is running.
    Runs(Progress),
    /// A round ended: its name, and its requests per second.
    Measured(&'a str, f64),
    /// A profile ended: its name, and what it shows most of.
    Profiled(&'a str, &'a str),
    /// A sentence for the observer.
    Said(&'a str),
}
