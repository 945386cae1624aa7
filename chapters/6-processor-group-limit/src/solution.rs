//! The solution: all CPUs are counted and have their workers before the acceptor is pinned.

use std::io;

use crate::texts::Texts;
use crate::worker::{Queue, start_workers, stay_by_the_network_card};

// ANCHOR: start
/// Starts a worker for each CPU, from the thread that accepts.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    let queues = start_workers(num_cpus::get(), texts)?;
    stay_by_the_network_card();
    Ok(queues)
}
// ANCHOR_END: start
