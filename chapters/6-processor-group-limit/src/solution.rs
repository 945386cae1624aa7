//! The solution: all CPUs are counted and have their workers before the acceptor is pinned.

use std::io;

use crate::texts::Texts;
use crate::worker::{Queue, pin_to_first_cpu, start_workers};

// ANCHOR: start
/// Starts a worker for each CPU, from the thread that accepts.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    let queues = start_workers(num_cpus::get(), texts)?;
    pin_to_first_cpu();
    Ok(queues)
}
// ANCHOR_END: start
