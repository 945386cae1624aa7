//! Loads and claims of a chapter, outcomes, rounds and records, as data. Nothing here runs, judges or prints.

pub mod attempt;
pub mod chapter_file;
mod checked;
pub mod claim;
pub mod law;
pub mod load;
pub mod record;
pub mod reference;
