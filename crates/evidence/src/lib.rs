//! How the workshop obtains its figures: loads, rounds, statistics, claims,
//! captures and reports. It has no command line; `crates/workshop` is that.

pub mod capture;
pub mod chapter_file;
pub mod claim;
pub mod environment;
pub mod figures;
pub mod flamegraph;
pub mod grade;
pub mod law;
pub mod load;
pub mod outcome;
pub mod plots;
pub mod provenance;
pub mod record;
pub mod reference;
pub mod report;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod verdict;
