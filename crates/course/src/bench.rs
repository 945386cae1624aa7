//! Runs of servers as child processes under load, in the order that a proof needs, and the profiles taken
//! from them.

pub mod contract;
pub mod counters;
pub mod drivers;
pub mod metrics;
pub mod neighbours;
pub mod profiling;
pub mod proof;
pub mod provenance;
pub mod recording;
pub mod rounds;
pub mod server;
pub mod testing;
pub mod trial;
mod watch;
