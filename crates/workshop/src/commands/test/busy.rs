//! A machine with something else to do.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Keeps one processor busy until it is dropped.
pub(super) struct BusyProcessor {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BusyProcessor {
    pub(super) fn start() -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                hint::spin_loop();
            }
        });
        Self {
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for BusyProcessor {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
