//! Runtimes that are watched, and other event loops and threads of this process that may belong to a runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::runtime::Handle;

/// Number of runtimes of the endpoints' own listeners, which need no watching.
pub(crate) static OF_LISTENERS: AtomicUsize = AtomicUsize::new(0);

/// Number of descriptors that tokio has open for each runtime's epoll: the poll, and its registry. A test counts them.
const DESCRIPTORS_OF_ONE: usize = 2;

/// Most descriptors that are examined. Runtimes are made early, and the system lists the lowest numbers first.
const MOST_DESCRIPTORS: usize = 1024;

/// A runtime with its name in reports.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) handle: Handle,
}

impl Watched {
    /// Returns whether it was shut down: then a spawned task is over at once.
    fn has_ended(&self) -> bool {
        let task = self.handle.spawn(std::future::pending::<()>());
        let has_ended = task.is_finished();
        task.abort();
        has_ended
    }
}

/// All watched runtimes, shared by the endpoints and by callers that add one later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runtimes(Arc<Mutex<Vec<Watched>>>);

impl Runtimes {
    /// Adds a runtime, unless it is watched already. A name that is taken gets a number.
    pub(crate) fn add(&self, name: &str, handle: Handle) {
        let mut all = self.living();
        if all.iter().any(|one| one.handle.id() == handle.id()) {
            return;
        }
        let mut free = name.to_owned();
        let mut number = 1;
        while all.iter().any(|one| one.name == free) {
            number += 1;
            free = format!("{name} {number}");
        }
        all.push(Watched { name: free, handle });
    }

    /// Adds the runtime that the caller is in, if there is one, named like the calling thread.
    pub(crate) fn add_current(&self) {
        if let Ok(handle) = Handle::try_current() {
            self.add(std::thread::current().name().unwrap_or("unnamed"), handle);
        }
    }

    pub(crate) fn all(&self) -> Vec<Watched> {
        self.living().clone()
    }

    /// Returns the runtimes that have not been shut down.
    fn living(&self) -> MutexGuard<'_, Vec<Watched>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| !one.has_ended());
        all
    }
}

/// Extent of the process that is watched.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Scope {
    pub(crate) runtimes: usize,
    pub(crate) workers: usize,
    /// Number of event loops, as of a tokio runtime with I/O, that belong to no watched runtime. Known only on Linux.
    pub(crate) event_loops_not_watched: Option<usize>,
    /// Names of the threads that belong neither to the watched runtimes nor to the endpoints, each with its number of
    /// threads.
    pub(crate) other_threads: BTreeMap<String, usize>,
    /// All of this as a sentence.
    pub(crate) watches: String,
}

impl Scope {
    /// Returns the scope of the runtimes `watched`; `threads` are the names of their threads.
    pub(crate) fn of(watched: &[Watched], threads: &BTreeSet<String>) -> Self {
        let mut workers = 0;
        let mut names = Vec::new();
        for one in watched {
            workers += one.handle.metrics().num_workers();
            names.push(one.name.as_str());
        }
        let mut scope = Self {
            runtimes: watched.len(),
            workers,
            event_loops_not_watched: event_loops_not_watched(watched.len()),
            other_threads: other_threads(threads),
            watches: String::new(),
        };
        scope.watches = scope.sentence(&names.join(", "));
        scope
    }

    fn sentence(&self, names: &str) -> String {
        let watched = format!(
            "watches {} ({names}) with {}",
            counted(self.runtimes, "runtime"),
            counted(self.workers, "worker"),
        );
        let Some(more @ 1..) = self.event_loops_not_watched else {
            return watched;
        };
        let mut others = Vec::new();
        for (name, count) in &self.other_threads {
            others.push(format!("{count} {name}"));
        }
        let threads = match others.as_slice() {
            [] => String::new(),
            others => format!(" (other threads: {})", others.join(", ")),
        };
        format!(
            "{watched}; this process has {} that it does not watch, as a further tokio runtime has one{threads}: add \
             such runtimes with DebugEndpoints::runtime or watch_current_runtime",
            counted(more, "event loop"),
        )
    }
}

/// Returns a count with the noun that it is of.
fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// Returns the number of runtimes that there may be by their descriptors, besides `watched` ones and those of the
/// listeners. Another library's epoll has only one descriptor, so one alone does not count as a runtime.
pub(crate) fn event_loops_not_watched(watched: usize) -> Option<usize> {
    let known = (watched + OF_LISTENERS.load(Relaxed)) * DESCRIPTORS_OF_ONE;
    let more = epoll_descriptors()?.saturating_sub(known);
    Some(more / DESCRIPTORS_OF_ONE)
}

fn epoll_descriptors() -> Option<usize> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?;
    let mut count = 0;
    for descriptor in open.take(MOST_DESCRIPTORS).flatten() {
        if let Ok(to) = std::fs::read_link(descriptor.path())
            && to.as_os_str() == "anon_inode:[eventpoll]"
        {
            count += 1;
        }
    }
    Some(count)
}

/// Names of the endpoints' own threads.
const OURS: [&str; 14] = [
    "admin",
    "await-counts",
    "await-profile",
    "cpu-profiles",
    "debug-answers",
    "descriptors",
    "heartbeat",
    "incident",
    "incidents",
    "memory",
    "probe",
    "sockets",
    "tasks",
    "thread-profiles",
];

/// Returns whether a folded stack is of one of the endpoints' own threads.
pub(crate) fn is_ours(folded: &str) -> bool {
    let (thread, _) = folded.split_once(';').unwrap_or((folded, ""));
    OURS.contains(&thread)
}

/// Returns the number of threads of the process, the most frequent name, and the number of threads with that name.
pub(crate) fn threads_by_name() -> Option<(usize, String, usize)> {
    let mut by_name = BTreeMap::<String, usize>::new();
    let mut all = 0;
    for thread in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        all += 1;
        if let Ok(name) = std::fs::read(thread.path().join("comm")) {
            let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
            *by_name.entry(name).or_default() += 1;
        }
    }
    let (name, times) = by_name.into_iter().max_by_key(|(_, times)| *times)?;
    Some((all, name, times))
}

/// Counts the process's threads by name, without the main one, ours, and those with these names.
fn other_threads(names: &BTreeSet<String>) -> BTreeMap<String, usize> {
    // The system keeps 15 bytes of a name.
    let mut known = BTreeSet::new();
    for name in names {
        known.insert(&name.as_bytes()[..name.len().min(15)]);
    }
    let mut others = BTreeMap::new();
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return others;
    };
    let main = std::process::id().to_string();
    for thread in threads.flatten() {
        let Ok(comm) = std::fs::read(thread.path().join("comm")) else {
            continue;
        };
        let name = comm.trim_ascii_end();
        let is_ours = OURS.iter().any(|ours| ours.as_bytes() == name);
        if !is_ours && thread.file_name() != *main && !known.contains(name) {
            let name = String::from_utf8_lossy(name).into_owned();
            *others.entry(name).or_default() += 1;
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_watched_once_each_under_names_of_their_own_until_they_end() {
        let runtimes = Runtimes::default();
        let two = [1, 2].map(|_| {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.expect("a runtime")
        });
        for runtime in two.iter().chain(&two) {
            runtimes.add("rows", runtime.handle().clone());
        }
        let names = || -> Vec<_> { runtimes.all().into_iter().map(|one| one.name).collect() };
        assert_eq!(names(), ["rows", "rows 2"]);
        let [first, _second] = two;
        drop(first);
        assert_eq!(names(), ["rows 2"]);
    }

    #[test]
    fn a_sentence_says_what_is_not_watched_and_what_to_do() {
        let mut scope = Scope {
            runtimes: 1,
            workers: 2,
            event_loops_not_watched: Some(0),
            other_threads: BTreeMap::from([("actix-rt|system".to_owned(), 2)]),
            watches: String::new(),
        };
        let sentence = scope.sentence("main");
        assert_eq!(sentence, "watches 1 runtime (main) with 2 workers");
        scope.event_loops_not_watched = Some(2);
        let sentence = scope.sentence("main");
        assert!(
            sentence.contains("2 event loops that it does not watch")
                && sentence.contains("2 actix-rt|system")
                && sentence.contains("watch_current_runtime"),
            "{sentence}"
        );
    }
}
