//! Exercise: start no more workers than the container's quota gives time.
//!
//! A quota limits the CPU time of a process in each tenth of a second, and not the CPUs on which it may run.
//! Workers that use it up early stop until the next tenth begins, all of them together.
//!
//! Change the code below so that there are as many workers as the quota gives CPUs' worth of time: rounded down,
//! at least one, and no more than there are CPUs. Without a quota each CPU must have a worker.
//!
//!     cargo run -p studies --bin container -- container-exercise     is it fixed? (Linux, as root)
//!     git checkout chapters/6-processor-group-limit/src/container    start over

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
