//! The chapter's other fault: more workers than a container's quota gives time.
//!
//! The study `container` puts these variants under a quota of half of the machine's CPUs.

pub(crate) mod exercise;
pub(crate) mod problem;
pub(crate) mod solution;
