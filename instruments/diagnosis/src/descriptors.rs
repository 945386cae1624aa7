//! File descriptors of a process: the limit, the number that is open, and their kinds.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::Process;

/// Most descriptors whose kind is read, which takes a system call each.
const MOST_KINDS: usize = 4096;

/// Returns the soft limit on open descriptors (`RLIMIT_NOFILE`); [`u64::MAX`] if there is none.
pub fn limit(process: Process) -> Option<u64> {
    let limits = fs::read_to_string(process.path("limits")).ok()?;
    let mut lines = limits.lines();
    let line = lines.find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(3)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Returns the number of open descriptors. In the calling process, the one that lists them does not count.
///
/// # Errors
///
/// Fails if they cannot be listed: there is no such process, it is another user's, or no descriptor is left here.
pub fn open(process: Process) -> io::Result<u64> {
    let listed = fs::read_dir(process.path("fd"))?.count() as u64;
    Ok(listed.saturating_sub(u64::from(process.is_this())))
}

/// Targets of open descriptors.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Numbers of descriptors by their kind.
    pub by_kind: BTreeMap<String, u64>,
    /// Numbers of open files by the name of their folder.
    pub by_folder: BTreeMap<String, u64>,
}

/// Returns what the open descriptors lead to.
pub fn targets(process: Process) -> Targets {
    let mut targets = Targets::default();
    let folder = process.path("fd");
    let mut paths = Vec::new();
    if let Ok(listed) = fs::read_dir(&folder) {
        for entry in listed.flatten().take(MOST_KINDS) {
            paths.push(entry.path());
        }
    } else {
        // A list takes a descriptor, and perhaps none is left. The system gives the smallest numbers first.
        for number in 0..MOST_KINDS {
            paths.push(Path::new(&folder).join(number.to_string()));
        }
    }
    for path in paths {
        if let Ok(target) = fs::read_link(path) {
            targets.count(&target);
        }
    }
    targets
}

impl Targets {
    fn count(&mut self, target: &Path) {
        let kind = kind(&target.to_string_lossy());
        if kind == FILES
            && let Some(folder) = target.parent().and_then(Path::file_name)
        {
            let folder = folder.to_string_lossy().into_owned();
            *self.by_folder.entry(folder).or_default() += 1;
        }
        *self.by_kind.entry(kind.to_owned()).or_default() += 1;
    }
}

/// Kind of a descriptor that leads to a file.
const FILES: &str = "files";

/// Returns the kind of a descriptor, by the target of its link.
fn kind(target: &str) -> &'static str {
    match target {
        target if target.starts_with("socket:") => "sockets",
        target if target.starts_with("pipe:") => "pipes",
        target if target.starts_with("anon_inode:") => "event loops and others",
        _ => FILES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_of_what_it_leads_to() {
        for (target, expected) in [
            ("socket:[4711]", "sockets"),
            ("pipe:[9]", "pipes"),
            ("anon_inode:[eventpoll]", "event loops and others"),
            ("/var/lib/shop.db", "files"),
        ] {
            assert_eq!(kind(target), expected);
        }
    }

    #[test]
    fn files_are_counted_by_the_name_of_their_folder() {
        let mut targets = Targets::default();
        for target in ["/srv/parts/7", "/srv/parts/8", "/shop.db", "socket:[4711]"] {
            targets.count(Path::new(target));
        }
        assert_eq!(targets.by_folder, [("parts".to_owned(), 2)].into());
        assert_eq!(targets.by_kind["files"], 3);
    }
}
