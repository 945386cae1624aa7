//! The problem: the acceptor goes to its CPU first, and then the CPUs are counted.

use std::io;

use crate::texts::Texts;
use crate::worker::{Queue, pin_to_first_cpu, start_workers};

// ANCHOR: start
/// Starts a worker for each CPU, from the thread that accepts.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    pin_to_first_cpu();
    let queues = start_workers(num_cpus::get(), texts)?;
    Ok(queues)
}
// ANCHOR_END: start
