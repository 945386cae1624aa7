//! The program `duel`: compares two servers, finds the commit that made one slower, loads one, or looks into one.
//! Its README says how; the library under it is `duel-engine`.

#[macro_use]
extern crate terminal;

pub mod bisect;
mod cli;
pub mod locust;
pub mod report;

pub use self::cli::main;
