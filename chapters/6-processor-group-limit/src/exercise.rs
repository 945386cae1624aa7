//! Exercise: give every CPU a worker.
//!
//! A worker is a thread with a runtime and a web server of its own. It answers the
//! connections that it was given, and no other thread does. So a CPU without
//! a worker does nothing, however many requests are waiting.
//!
//! Change the code below so that there are as many workers as CPUs that this
//! process may use, however many there are, and so that they can run on all of them.
//! The acceptor, which is the thread that calls `start`, has to stay where it is: on
//! the first of those CPUs alone, because that one handles the network card's
//! interrupts.
//!
//! What you may need, all of it in `worker.rs`:
//!
//!     num_cpus::get()                how many CPUs
//!     start_workers(count, texts)?   starts so many workers, from this thread
//!     pin_to_first_cpu()             pins this thread to that CPU
//!
//!     cargo workshop check 6       is it fixed?
//!     cargo workshop hint 6        the next hint
//!     cargo workshop solution 6    one way to do it, as a diff
//!     cargo workshop reset 6       start over (your file is kept aside)

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
