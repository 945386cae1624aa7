//! The log of the changes that a service records.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde::Serialize;

use crate::locked;

/// Changes that the log holds. Older ones go.
pub(crate) const LOG_LENGTH: usize = 10_000;

/// A change that was queued.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    pub(crate) row: u64,
    pub(crate) value: String,
}

/// The log of the changes, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    /// Number of all changes, including those that the log no longer holds.
    count: u64,
    latest: VecDeque<Record>,
}

impl Records {
    pub(crate) fn push(&self, record: Record) {
        let mut log = locked(&self.0);
        log.count += 1;
        if log.latest.len() == LOG_LENGTH {
            log.latest.pop_front();
        }
        log.latest.push_back(record);
    }

    pub(crate) fn count(&self) -> u64 {
        locked(&self.0).count
    }

    pub(crate) fn latest(&self) -> Vec<Record> {
        locked(&self.0).latest.iter().cloned().collect()
    }
}
