//! A machine that follows code of a program without running it: does a function use a value?
//!
//! It knows the copied memory of a process, and the program's own code and constants. Whatever it does not know is
//! unknown, and where a branch depends on that, it follows both ways. Writes go nowhere. It enters functions that drop
//! something, and skips all others. Only x86-64 is understood; for other architectures there is no answer.

use std::ops::Range;

use crate::memory::Memory;
use crate::pass::Drops;

/// The program's code.
pub(crate) struct Code<'q> {
    pub(crate) functions: &'q Drops,
    /// By how much the program lies higher in memory than it was linked.
    pub(crate) bias: u64,
    /// Addresses of the program as linked.
    pub(crate) image: &'q Range<u64>,
}

/// A question to the machine.
pub(crate) struct Question<'q> {
    pub(crate) memory: &'q Memory,
    pub(crate) code: Code<'q>,
    /// Memory on which the answer depends: there is none if parts of it are unknown.
    pub(crate) known: &'q [Range<u64>],
    /// The value that may be used.
    pub(crate) wanted: Range<u64>,
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Machine;

/// Stands for the machine where it does not know the architecture.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Default)]
pub(crate) struct Machine(());

#[cfg(not(target_arch = "x86_64"))]
impl Machine {
    /// Returns no answer.
    pub(crate) fn uses(&mut self, _: &Question<'_>, _: u64, _: u64) -> Option<bool> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;
