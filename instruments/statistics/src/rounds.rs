//! The loop of every measurement that ends with a verdict: a comparison of two builds, a proof of a chapter's fix, and
//! the tests that simulate how often either is wrong.
//!
//! A round loads three servers, in an order that favours none: the base, the change, and one of the two again (the base
//! in a comparison, the change in a proof). A round is dropped only for what the machine reports, such as other
//! programs on the CPU, and never for its result. Each time the number of the other rounds reaches one of a few fixed
//! values, they are judged together: this is a *look*. The first look that decides ends the run.

use std::ops::ControlFlow;

use crate::{Looks, Side, triplet};

/// Rounds of one measurement: how one is run, and what they say together.
pub trait Rounds {
    /// Reason why a round cannot be run.
    type Error;

    /// Runs round `number`, counted from 0, and loads the servers in this order. Keeps the round's figures unless the
    /// round is dropped.
    ///
    /// Returns `Break` if the run has to end, whatever the rounds so far say.
    ///
    /// # Errors
    ///
    /// Fails if a server or the generator fails, or on Ctrl-C.
    fn run(&mut self, number: u32, order: [Side; 3]) -> Result<ControlFlow<()>, Self::Error>;

    /// Returns the number of rounds that count.
    fn counted(&self) -> u32;

    /// Judges the rounds that count, and returns whether they decide the verdict.
    fn are_decisive(&mut self) -> bool;
}

/// Runs rounds until a look decides, the last look is over, or a round says that none may follow.
///
/// # Errors
///
/// Returns the error of the first round that fails.
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
