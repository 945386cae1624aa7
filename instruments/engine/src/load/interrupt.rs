//! The wish to stop, as a flag that whatever runs for long looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once (by Ctrl-C, usually), seen by every clone. Never cleared: a workshop
/// command that was interrupted ends.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything that holds a clone to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
