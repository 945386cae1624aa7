//! File descriptors: the number that is open, the limit, and their kinds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use diagnosis::evidence::Descriptors;
use diagnosis::{Process, descriptors};

use crate::error::EndpointError;
use crate::own_thread::{self, Until};

/// Time between two counts. The first and the last count also read the kinds.
const PAUSE: Duration = Duration::from_millis(250);

/// Counts them for `duration`.
pub(crate) async fn watch(duration: Duration) -> Result<Descriptors, EndpointError> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let seen = own_thread::look("descriptors", &ONE, duration, take);
    let unsupported = EndpointError::Unsupported("descriptors are told on Linux only");
    seen.await?.ok_or(unsupported)
}

/// Counts them until the end; at least once. Returns nothing where the system does not tell.
pub(crate) fn take(until: &Until<'_>) -> Option<Descriptors> {
    let mut seen = Descriptors {
        limit: limit()?,
        ..Descriptors::default()
    };
    loop {
        if let Ok(open) = open() {
            seen.most_open = seen.most_open.max(open);
            if seen.by_kind.is_empty() || until.is_over() {
                list(&mut seen);
            }
        } else {
            // Listing the descriptors takes one itself.
            seen.none_left += 1;
            seen.most_open = seen.most_open.max(seen.limit);
            if seen.by_kind.is_empty() {
                list(&mut seen);
            }
        }
        if until.is_over() {
            return Some(seen);
        }
        until.sleep(PAUSE);
    }
}

/// Returns the soft limit on open descriptors. If no descriptor is left to read it with, returns the last value read.
pub(crate) fn limit() -> Option<u64> {
    static BEFORE: AtomicU64 = AtomicU64::new(0);
    if let Some(limit) = descriptors::limit(Process::this()) {
        BEFORE.store(limit, Ordering::Relaxed);
    }
    Some(BEFORE.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
}

/// Returns the number of open descriptors, without the one that lists them.
pub(crate) fn open() -> std::io::Result<u64> {
    descriptors::open(Process::this())
}

/// Lists what the open descriptors lead to.
fn list(seen: &mut Descriptors) {
    let targets = descriptors::targets(Process::this());
    (seen.by_kind, seen.by_folder) = (targets.by_kind, targets.by_folder);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_counted_by_kind() {
        let before = open().expect("one is left");
        let files: Vec<_> = (0..20)
            .map(|_| std::fs::File::open("/proc/self/status").expect("one is left"))
            .collect();
        let after = open().expect("one is left");
        assert!(after >= before + 15, "{before} {after}");
        assert!(descriptors::targets(Process::this()).by_kind["files"] >= 20);
        assert!(limit().expect("Linux") > after);
        drop(files);
    }
}
