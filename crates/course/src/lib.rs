//! What teaches: the claims of a chapter, the run that tests them, the judgement, and what people read of it.
//!
//! [`measurement`] is data: what a chapter writes down and what a run records. [`bench`] runs servers and loads and makes a
//! record. [`analysis`] judges a record or a trial, by pure functions. [`report`] writes tables, plots and pages of it.
//! None of them knows a chapter by name or number; what makes one different is in its `chapter.toml`.

pub mod analysis;
pub mod bench;
pub mod measurement;
pub mod report;
