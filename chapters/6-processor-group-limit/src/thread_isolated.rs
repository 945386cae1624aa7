//! A step on the way: a worker for each CPU, by the count that most programs take.

use std::{io, thread};

use crate::texts::Texts;
use crate::worker::{Queue, Worker};

// ANCHOR: start
/// Starts a worker for each CPU. On Windows `num_cpus` counts one processor group only.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    (0..num_cpus::get())
        .map(|_| {
            let (queue, worker) = Worker::new(texts)?;
            thread::spawn(|| worker.run());
            Ok(queue)
        })
        .collect()
}
// ANCHOR_END: start
