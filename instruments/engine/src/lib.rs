//! Compares two servers, the *base* and the *change*: starts both, loads them in turns, checks their answers, and
//! judges which is faster, with a known error rate.
//!
//! A comparison goes through these modules in order:
//!
//! 1. [`traffic`] describes a load, and [`answers`] learns the right answers.
//! 2. [`service`] starts a server as a child process ([`children`]), on CPUs of its own ([`placement`]).
//! 3. [`load`] sends the load; [`outcome`] is the result.
//! 4. [`comparison`] runs rounds of base, change and base again. [`statistics`] estimates ratios and intervals, and judges
//!    them.
//!
//! Others help them: [`login`], [`prometheus`], [`url`] and more.

pub mod answers;

pub mod bodies;
pub mod capacity;
pub mod comparison;
pub mod event;

pub mod load;
pub mod login;
pub mod outcome;
pub mod placement;

pub mod prometheus;
pub mod service;
mod service_profiles;
pub mod traffic;
pub mod url;
