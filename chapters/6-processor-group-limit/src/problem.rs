//! The problem: the acceptor goes to its CPU first, and then the CPUs are counted.

use std::{io, thread};

use crate::texts::Texts;
use crate::worker::{Queue, Worker};

// ANCHOR: start
/// Starts a worker for each CPU, from the thread that accepts.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    stay_by_the_network_card();
    (0..num_cpus::get())
        .map(|_| {
            let (queue, worker) = Worker::new(texts)?;
            thread::spawn(|| worker.run());
            Ok(queue)
        })
        .collect()
}
// ANCHOR_END: start

// ANCHOR: pin
/// Keeps the calling thread on the CPU that the network card interrupts, so that a new
/// connection is accepted where its packets are.
fn stay_by_the_network_card() {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    if let Some(&first) = cores.first() {
        core_affinity::set_for_current(first);
    }
}
// ANCHOR_END: pin
