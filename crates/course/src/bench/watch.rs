//! A server watched while it is under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bench::server::Server;
use crate::measurement::record::CountsAt;

const PERIOD: Duration = Duration::from_millis(100);

/// Runs `load`, and reads the server's counts ten times a second until it ends.
pub(crate) fn series<T>(server: &Server, load: impl FnOnce() -> T) -> (T, Vec<CountsAt>) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let began = Instant::now();
            let mut seen = Vec::new();
            while !done.load(Ordering::Relaxed) {
                seen.extend(now(server, began));
                std::thread::sleep(PERIOD);
            }
            seen
        });
        let result = load();
        done.store(true, Ordering::Relaxed);
        // A watcher that panicked counts as one that saw nothing.
        (result, watcher.join().unwrap_or_default())
    })
}

fn now(server: &Server, began: Instant) -> Option<CountsAt> {
    let metrics = server.metrics().ok()?;
    Some(CountsAt {
        s: began.elapsed().as_secs_f64(),
        accepted: metrics.count("connections_total")?,
        finished: metrics.count("connections_finished_total")?,
        waiting: metrics.count("database_waiting")?,
    })
}
