//! How the workshop obtains its figures: loads, rounds, statistics, claims,
//! captures and reports. It has no command line; `crates/workshop` is that.

pub mod generator;
pub mod interrupt;
pub mod load;
pub mod outcome;
pub mod processors;
