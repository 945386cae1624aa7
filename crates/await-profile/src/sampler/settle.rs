//! Getting to know the requests that were in flight before the profile.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Sampler;
use crate::slot::{NotWaiting, Slot};

/// How long requests already in flight are given to show that they are waiting.
const SETTLE: Duration = Duration::from_millis(200);
/// How many of them are woken at once, and how long the others then wait.
const SETTLE_BATCH: usize = 256;
const SETTLE_PAUSE: Duration = Duration::from_millis(1);

impl Sampler<'_> {
    /// Has every request in flight polled once, so that from then on its waker is
    /// one that notes wakes. Without this, a request could be woken unnoticed.
    pub(crate) fn settle(&self) {
        let registry = &self.running.shared.registry;
        let untracked = |slot: &Arc<Slot>| {
            !self.is_tracked(slot) && slot.not_waiting() != Some(NotWaiting::Gone)
        };
        let mut unsettled: Vec<_> = registry
            .each_shard()
            .flatten()
            .filter(untracked)
            .enumerate()
            .map(|(woken, slot)| {
                if woken % SETTLE_BATCH == SETTLE_BATCH - 1 {
                    thread::sleep(SETTLE_PAUSE);
                }
                slot.wake();
                slot
            })
            .collect();
        let deadline = Instant::now() + SETTLE;
        while !unsettled.is_empty() && Instant::now() < deadline {
            thread::sleep(SETTLE_PAUSE);
            unsettled.retain(untracked);
        }
    }
}
