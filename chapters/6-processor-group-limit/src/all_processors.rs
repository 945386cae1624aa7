//! Another solution, which is right on Windows with several processor groups as well.

use std::io;

use many_cpus::SystemHardware;

use crate::texts::Texts;
use crate::worker::{Queue, Worker, pin_to_first_cpu};

/// Starts a worker for each CPU, from the thread that accepts.
pub(crate) fn start(texts: &Texts) -> io::Result<Vec<Queue>> {
    // Asked before any thread is pinned: the answer is kept for the life of the process.
    let queues = start_on(SystemHardware::current(), texts)?;
    pin_to_first_cpu();
    Ok(queues)
}

/// Starts a worker for each CPU of `hardware`, those of all groups, which may run on any.
fn start_on(hardware: &SystemHardware, texts: &Texts) -> io::Result<Vec<Queue>> {
    let processors = hardware.processors();
    (0..processors.len())
        .map(|_| {
            let (queue, worker) = Worker::new(texts)?;
            processors.spawn_thread(|_| worker.run());
            Ok(queue)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use many_cpus::fake::HardwareBuilder;

    use super::*;

    #[test]
    fn four_groups_of_44_cpus_get_176_workers() {
        let processors = NonZero::new(176).expect("not zero");
        let regions = NonZero::new(4).expect("not zero");
        let hardware = SystemHardware::fake(HardwareBuilder::from_counts(processors, regions));
        let queues = start_on(&hardware, &Texts::none()).expect("176 threads can be had");
        assert_eq!(queues.len(), 176);
        assert!(
            queues.iter().all(|queue| !queue.is_closed()),
            "all of them run"
        );
    }
}
