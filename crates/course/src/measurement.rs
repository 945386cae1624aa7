//! What is measured, as data: loads and claims of a chapter, outcomes, rounds and records.
//! Nothing here runs, judges or prints.

pub mod attempt;
pub mod chapter_file;
mod checked;
pub mod claim;
pub mod instructions;
pub mod law;
pub mod load;
pub mod record;
pub mod reference;
