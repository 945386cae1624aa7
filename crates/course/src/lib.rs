//! The course: the claims of a chapter (such as "at least 300 times as many requests"), the run that tests them, the
//! judgement, and the reports for people.
//!
//! [`measurement`] is data: chapter files, and *records* of proofs. [`mod@bench`] runs servers and loads. It makes a record
//! of a proof, or a *trial* of a learner's edit. [`analysis`] judges a record or a trial, by pure functions. [`report`]
//! writes tables, plots and pages from records. None of them knows a chapter by name or number: each chapter's
//! `chapter.toml` holds what differs.

pub mod analysis;
pub mod bench;
pub mod measurement;
pub mod report;
