//! Stacks of the threads of a process, and rules that name what holds its requests up.
//!
//! With the feature `threads`, [`threads::sample`] samples all threads of a process. It also takes stacks of sleeping
//! threads, which a CPU profile never sees. [`threads::ThreadProfile`] is the result.
//!
//! [`Evidence`] holds all observations of a process as plain data. [`Report::new`] judges it by all rules: a rule is a
//! function from facts to sightings, and a table has the words, the level and the rank of the [`Finding`] that each becomes.
//! All numbers of the rules are in [`thresholds`]. [`Neighbours`] measures the CPU time of other programs, and [`Process`]
//! names the process.

pub mod datagrams;
pub mod descriptors;
pub mod evidence;
mod facts;
mod finding;
mod followed;
pub mod maps;
mod neighbours;
mod process;
mod report;
mod rules;
pub mod sockets;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod thresholds;
mod waiting;

pub use ecosystem::{escaped, printable};
pub use evidence::{Addresses, Evidence, Unreadable};
pub use finding::{Finding, Level};
pub use neighbours::{Neighbours, lost_in_words};
pub use process::Process;
pub use report::{Report, WithText};
