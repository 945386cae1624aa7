//! The loop of every measurement that ends with a verdict: a proof of a chapter, a comparison of two builds, and the tests
//! that simulate how often either is wrong.
//!
//! A round loads the base, the change and one of the two again, in an order that favors none. It counts, unless the
//! machine's own report sets it aside; its result never does. The rounds that count are judged at a few looks, and the
//! first look that decides ends the run.

use std::ops::ControlFlow;

use crate::statistics::{Looks, Side, triplet};

/// Rounds of one measurement: how one is run, and what they say together.
pub trait Rounds {
    /// Reason why a round cannot be run.
    type Error;

    /// Runs round `number`, counted from 0, and loads the servers in this order. Keeps its figures if it counts.
    ///
    /// Returns `Break` if no other round shall follow, whatever the rounds so far say.
    ///
    /// # Errors
    ///
    /// Fails if a server or the generator fails, or on Ctrl-C.
    fn run(&mut self, number: u32, order: [Side; 3]) -> Result<ControlFlow<()>, Self::Error>;

    /// Returns the number of rounds that count.
    fn counted(&self) -> u32;

    /// Judges the rounds that count, and returns whether more of them would change nothing.
    fn are_decisive(&mut self) -> bool;
}

/// Runs rounds until a look decides, the last look is over, or a round says that none shall follow.
///
/// # Errors
///
/// Fails as the first round that fails.
pub fn run_until_decided<R: Rounds>(rounds: &mut R, looks: Looks) -> Result<(), R::Error> {
    for number in 0.. {
        if rounds.run(number, triplet(number))?.is_break() {
            break;
        }
        let counted = rounds.counted();
        if looks.is_last(counted) || looks.is_one(counted) && rounds.are_decisive() {
            break;
        }
    }
    Ok(())
}
