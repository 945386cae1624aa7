//! Chapter 7: NUMA locality.
//!
//! A library beside `main.rs`, so that `examples/scan.rs` can run the scan alone, without a server
//! around it, under instruments that look into the CPU.

pub mod basic;
pub mod copies;
pub mod exercise;
mod once;
pub mod pinned;
pub mod problem;
pub mod region_local;
pub mod solution;
pub mod team;
pub mod texts;
pub mod thread_isolated;
