//! A step on the way: a worker for each CPU, by the count that most programs take.

use std::io;

use crate::texts::Texts;
use crate::worker::{Queue, start_workers};

/// Starts a worker for each CPU. On Windows `num_cpus` counts one processor group only.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    start_workers(num_cpus::get(), texts)
}
