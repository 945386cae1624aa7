//! Compares two servers: starts both, loads them in turns, checks their answers, and judges which is faster, with a
//! known error rate.
//!
//! Its parts follow each other: [`traffic`] describes a load, [`load`] sends it and [`outcome`] is the result;
//! [`service`] starts a server as a child process; [`comparison`] runs [`rounds`] of two, and [`verdict`] judges them.

pub mod answers;
pub mod ask;
pub mod bodies;
pub mod child;
pub mod comparison;
pub mod counters;
pub mod environment;
pub mod event;
pub mod figures;
pub mod folded;
pub mod load;
pub mod login;
pub mod metric;
pub mod outcome;
pub mod placement;
mod printable;
pub mod profile;
pub mod program;
pub mod prometheus;
pub mod rounds;
pub mod service;
mod service_profiles;
pub mod statistics;
pub mod tool;
pub mod traffic;
pub mod url;
pub mod verdict;

pub use self::printable::printable;
