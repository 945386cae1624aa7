//! Stacks of the threads of a process, and what they say of requests that wait.
//!
//! With the feature `threads`, [`threads::sample`] looks at all threads of a process for some time. It takes stacks also
//! of threads that sleep, which a CPU profile never sees. [`threads::ThreadProfile`] has what they did.

mod finding;
pub mod maps;
mod process;
pub mod threads;

pub use finding::Finding;
pub use process::Process;
