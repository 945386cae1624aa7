//! File descriptors: the number that is open, the limit, and their kinds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use diagnosis::evidence::Descriptors;

use crate::error::EndpointError;
use crate::own_thread::{self, Until};

/// Time between two counts. The first and the last count also read the kinds.
const PAUSE: Duration = Duration::from_millis(250);

/// Most descriptors whose kind is read, which takes a system call each.
const MOST_KINDS: usize = 4096;

/// Counts them for `duration`.
pub(crate) async fn watch(duration: Duration) -> Result<Descriptors, EndpointError> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let seen = own_thread::look("descriptors", &ONE, duration, take);
    let unsupported = EndpointError::Unsupported("descriptors are told on Linux only");
    seen.await?.ok_or(unsupported)
}

fn take(until: &Until<'_>) -> Option<Descriptors> {
    let mut seen = Descriptors {
        limit: limit()?,
        ..Descriptors::default()
    };
    loop {
        if let Ok(open) = open() {
            seen.most_open = seen.most_open.max(open);
            if seen.by_kind.is_empty() || until.is_over() {
                seen.by_kind = by_kind();
            }
        } else {
            // Listing the descriptors takes one itself.
            seen.none_left += 1;
            seen.most_open = seen.most_open.max(seen.limit);
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
    if let Ok(limits) = std::fs::read_to_string("/proc/self/limits") {
        let mut lines = limits.lines();
        let line = lines.find(|line| line.starts_with("Max open files"))?;
        let limit = line.split_whitespace().nth(3)?.parse().ok()?;
        BEFORE.store(limit, Ordering::Relaxed);
    }
    Some(BEFORE.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
}

/// Returns the number of open descriptors, without the one that lists them.
pub(crate) fn open() -> std::io::Result<u64> {
    let listed = std::fs::read_dir("/proc/self/fd")?.count();
    Ok(listed.saturating_sub(1) as u64)
}

fn by_kind() -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    let Ok(listed) = std::fs::read_dir("/proc/self/fd") else {
        return kinds;
    };
    for entry in listed.flatten().take(MOST_KINDS) {
        if let Ok(target) = std::fs::read_link(entry.path()) {
            *kinds.entry(kind(&target.to_string_lossy())).or_default() += 1;
        }
    }
    kinds
}

/// Returns the kind of a descriptor, by the target of its link.
fn kind(target: &str) -> String {
    let kind = match target {
        target if target.starts_with("socket:") => "sockets",
        target if target.starts_with("pipe:") => "pipes",
        target if target.starts_with("anon_inode:") => "of the event loop and other kinds",
        _ => "files",
    };
    kind.to_owned()
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
        assert!(by_kind()["files"] >= 20);
        assert!(limit().expect("Linux") > after);
        drop(files);
    }

    #[test]
    fn a_descriptor_is_of_what_it_leads_to() {
        for (target, expected) in [
            ("socket:[4711]", "sockets"),
            ("pipe:[9]", "pipes"),
            (
                "anon_inode:[eventpoll]",
                "of the event loop and other kinds",
            ),
            ("/var/lib/shop.db", "files"),
        ] {
            assert_eq!(kind(target), expected);
        }
    }
}
