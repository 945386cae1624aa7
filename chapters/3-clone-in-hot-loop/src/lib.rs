//! Chapter 3: a clone in a hot loop.
//!
//! A library beside `main.rs`, so that the tests can count what one `page` allocates, and
//! callgrind what it executes, without a server around it.

pub mod clients;
pub mod exercise;
pub mod fewer_clones;
pub mod problem;
pub mod published;
pub mod solution;
pub mod sort_once;
