//! What is measured, as data: loads and claims of a chapter, outcomes, rounds and records.
//! Nothing here runs, judges or prints.

pub mod attempt;
pub mod chapter_file;
mod checked;
pub mod claim;
pub mod comparison;
pub mod environment;
pub mod figures;
pub mod instructions;
pub mod law;
pub mod load;
pub mod metrics;
pub mod outcome;
pub mod profile;
pub mod record;
pub mod reference;
pub mod traffic;
