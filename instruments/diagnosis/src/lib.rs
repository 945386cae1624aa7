//! Stacks of the threads of a process, and rules that name what holds its requests up.
//!
//! With the feature `threads`, [`threads::sample`] looks at all threads of a process for some time. It takes stacks also
//! of threads that sleep, which a CPU profile never sees. [`threads::ThreadProfile`] has what they did.
//!
//! [`Evidence`] is all that was seen of a process, as plain data. [`Report::new`] judges it by all rules: a rule is a
//! function from evidence to [`Finding`]s, and every number of the rules is in [`thresholds`].

pub mod evidence;
mod finding;
pub mod maps;
mod process;
mod report;
mod rules;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod thresholds;
mod waiting;

pub use evidence::Evidence;
pub use finding::{Finding, Level, Words};
pub use process::Process;
pub use report::Report;
