//! Exercise: give every CPU a worker.
//!
//! A worker is a thread with a runtime and a web server of its own. It answers the
//! connections that it was given, and no other thread does. So a CPU without
//! a worker does nothing, however many requests are waiting.
//!
//! Change the code below so that there are as many workers as CPUs that this
//! process may use, and so that they can run on all of them. The acceptor stays
//! where it is, on the CPU of the network card.
//!
//!     cargo workshop check 6       is it fixed?
//!     cargo workshop hint 6        the next hint
//!     cargo workshop solution 6    one way to do it, as a diff
//!     cargo workshop reset 6       start over (your file is kept aside)

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
