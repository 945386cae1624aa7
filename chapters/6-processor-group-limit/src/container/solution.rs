//! The solution in a container: a worker for each CPU's worth of time that the process may use.

use std::io;
use std::thread::available_parallelism;

use crate::texts::Texts;
use crate::worker::{Queue, start_workers};

// ANCHOR: start
/// Starts a worker for each CPU that the standard library counts, from affinity and quota.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    let cpus = available_parallelism().map_or(1, usize::from);
    start_workers(cpus, texts)
}
// ANCHOR_END: start
