//! How the workshop obtains its figures: loads, rounds, statistics, claims,
//! captures and reports. It has no command line; `crates/workshop` is that.

pub mod agreement;
pub mod capture;
pub mod chapter_file;
pub mod claim;
pub mod counters;
pub mod drivers;
pub mod environment;
pub mod figures;
pub mod flamegraph;
pub mod generator;
pub mod grade;
pub mod heap;
pub mod instructions;
pub mod interrupt;
pub mod law;
pub mod load;
pub mod metrics;
pub mod outcome;
pub mod plots;
pub mod price;
pub mod processors;
pub mod profiling;
pub mod proof;
pub mod provenance;
pub mod record;
pub mod reference;
pub mod regions;
pub mod report;
pub mod server;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod trial;
pub mod verdict;
pub mod yardstick;
