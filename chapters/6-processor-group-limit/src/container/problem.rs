//! The problem in a container: a worker for each core of the machine, whatever time the container has.

use std::io;

use crate::texts::Texts;
use crate::worker::{Queue, start_workers};

// ANCHOR: start
/// Starts a worker for each core on which this process may run.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    start_workers(cores.len(), texts)
}
// ANCHOR_END: start
