//! Conclusions from measurements: statistics, predictions, verdicts, grades. All are pure functions, so that
//! a record can be judged again at any time and each branch is tested without a server.

pub mod baseline;
pub mod finding;
pub mod grade;
pub mod heap;
pub(crate) mod machine;
pub mod measured;
pub mod prediction;
pub mod validity;
pub mod verdict;
