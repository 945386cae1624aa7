//! Compares two servers: starts both, loads them in turns, checks what they answer, and says which is faster,
//! with a known error rate.
//!
//! The program `duel` is what most people want; see its README. As a library it is in parts that follow each
//! other: [`traffic`] says what is sent, [`load`] sends it and [`outcome`] is what came of it; [`service`] starts
//! a server as a child process; [`comparison`] runs rounds of both, [`verdict`] judges them, and [`report`]
//! shows them.

#[doc(hidden)]
#[macro_use]
pub mod cli;

pub mod answers;
pub mod ask;
pub mod bisect;
mod bodies;
pub mod child;
pub mod comparison;
pub mod counters;
pub mod environment;
pub mod event;
pub mod figures;
pub mod folded;
pub mod frames;
pub mod load;
pub mod locust;
pub mod login;
pub mod metric;
pub mod outcome;
pub mod placement;
pub mod profile;
pub mod prometheus;
#[doc(hidden)]
pub mod report;
pub mod service;
mod service_profiles;
pub mod statistics;
pub mod tool;
pub mod traffic;
pub mod verdict;
