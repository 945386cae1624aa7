//! Runs what is to be measured: servers as child processes under load, in the order that a proof
//! asks for, and the profiles that they give meanwhile.

pub mod answers;
pub mod child;
pub mod comparison;
pub mod contract;
pub mod counters;
pub mod drivers;
pub mod environment;
mod neighbours;
pub mod placement;
pub mod profiling;
pub mod proof;
pub mod provenance;
pub mod recording;
pub mod rounds;
pub mod server;
mod service_profiles;
pub mod testing;
pub mod trial;
mod watch;
