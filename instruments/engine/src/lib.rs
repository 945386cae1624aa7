//! Compares two servers, the *base* and the *change*: starts both, loads them in turns, checks their answers, and
//! judges which is faster, with a known error rate.
//!
//! A comparison goes through these modules in order:
//!
//! 1. [`traffic`] describes a load, and [`answers`] learns the right answers.
//! 2. [`service`] starts a server as a child process ([`children`]), on CPUs of its own ([`placement`]).
//! 3. [`load`] sends the load; [`outcome`] is the result.
//! 4. [`comparison`] runs [`rounds`] of base, change and base again; their figures are [`metric`]s.
//! 5. [`statistics`] estimates ratios and intervals, and [`verdict`] judges them.
//!
//! Others help them: [`url`], [`prometheus`], [`profile`], [`figures`] for numbers as people read them, and more.

pub mod answers;

pub mod bodies;
pub mod comparison;
pub mod counters;
pub mod event;
pub mod figures;

pub mod load;
pub mod login;
pub mod metric;
pub mod outcome;
pub mod placement;

pub mod profile;
pub mod prometheus;
pub mod rounds;
pub mod service;
mod service_profiles;
pub mod statistics;
pub mod traffic;
pub mod url;
pub mod verdict;
