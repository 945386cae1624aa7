//! Resources that the shop uses for a journey, and CPU time that other programs took from it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use children::{cpus, processes};
use engine::load::ask;
use serde::{Deserialize, Serialize};

/// Name of the shop's own count on its debug listener.
const QUERIES: &str = "shop_queries_total";
/// Longest time until the debug listener answers.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Largest share of its CPU time that a shop may lose to other programs and still have a score.
const MOST_LOST: f64 = 0.1;

/// The shop as a process, to measure its costs.
pub struct Process<'a> {
    /// Its process id.
    pub id: u32,
    /// CPUs that it may use; empty for all.
    pub cpus: &'a [usize],
    /// The file of its database, if it has one.
    pub database: Option<PathBuf>,
    /// Address of its debug endpoints.
    pub debug: SocketAddr,
}

/// Costs of a journey. Each is `None` where the system or the database does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Milliseconds of CPU time.
    pub cpu_ms: Option<f64>,
    /// Queries that the database answered.
    pub queries: Option<f64>,
    /// Transactions that changed the database.
    pub commits: Option<f64>,
    /// Bytes of all answers.
    pub bytes: Option<f64>,
}

impl Costs {
    /// Each cost with its unit.
    pub fn in_words(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("CPU ms", self.cpu_ms),
            ("queries", self.queries),
            ("commits", self.commits),
            ("kB", self.bytes.map(|bytes| bytes / 1e3)),
        ]
    }
}

/// CPU seconds over the counted time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Used {
    /// On a CPU.
    pub(crate) ran: f64,
    /// Ready to run and without a CPU, of all threads together.
    pub(crate) waited: f64,
    /// Used by other programs on the CPUs of the shop.
    pub(crate) others: f64,
}

impl Used {
    /// Share of the CPU time within the shop's reach that other programs had while its threads waited.
    pub(crate) fn lost(self) -> f64 {
        // Threads of a busy shop also wait for each other, and others may run while none waits.
        let lost = self.waited.min(self.others).max(0.0);
        if lost > 0.0 {
            lost / (self.ran + lost)
        } else {
            0.0
        }
    }

    /// Returns whether the shop lost too much for its score to say anything.
    pub(crate) fn is_starved(self) -> bool {
        self.lost() > MOST_LOST
    }
}

/// Time on a CPU and time waiting for one, in nanoseconds.
type Thread = (u64, u64);

/// Watches a process from its creation on.
pub(crate) struct Meter<'a> {
    process: &'a Process<'a>,
    cpus: Vec<usize>,
    ran: f64,
    busy: f64,
    threads: BTreeMap<String, Thread>,
    waited_ns: u64,
    commits: Option<u32>,
    queries: Option<f64>,
}

impl<'a> Meter<'a> {
    /// Begins to measure; `None` if the system does not tell.
    pub(crate) async fn begin(process: &'a Process<'a>) -> Option<Self> {
        let queries = queries(process.debug).await;
        let cpus = if process.cpus.is_empty() {
            cpus::available()
        } else {
            process.cpus.to_vec()
        };
        let meter = Self {
            ran: ran(process.id)?,
            busy: busy(process, &cpus)?,
            commits: process.database.as_deref().and_then(commits),
            queries,
            process,
            cpus,
            threads: threads(process.id)?,
            waited_ns: 0,
        };
        Some(meter)
    }

    /// Looks at the threads. If a thread ends, its waiting time since the last look is lost.
    pub(crate) fn look(&mut self) {
        let Some(threads) = threads(self.process.id) else {
            return;
        };
        for (id, (_, waited)) in &threads {
            let before = match self.threads.get(id) {
                Some((_, before)) => *before,
                None => 0,
            };
            self.waited_ns += waited.saturating_sub(before);
        }
        self.threads = threads;
    }

    /// CPU time up to now; `None` where the system does not tell.
    pub(crate) fn used(&mut self) -> Option<Used> {
        self.look();
        Some(Used {
            ran: ran(self.process.id)? - self.ran,
            waited: self.waited_ns as f64 / 1e9,
            others: busy(self.process, &self.cpus)? - self.busy,
        })
    }

    /// Commits up to now.
    pub(crate) fn commits(&self) -> Option<f64> {
        let now = commits(self.process.database.as_deref()?)?;
        Some(f64::from(now.wrapping_sub(self.commits?)))
    }

    /// Queries up to now.
    pub(crate) async fn queries(&self) -> Option<f64> {
        Some(queries(self.process.debug).await? - self.queries?)
    }
}

/// Queries since the shop was started, as it counts them itself.
async fn queries(debug: SocketAddr) -> Option<f64> {
    // The users go on while this waits.
    let answer = tokio::task::spawn_blocking(move || ask::get(debug, "/metrics", TIMEOUT));
    let answer = answer.await.ok()?.ok()?;
    let text = String::from_utf8(answer).ok()?;
    for line in text.lines() {
        if let Some(value) = line.strip_prefix(QUERIES) {
            return value.trim().parse().ok();
        }
    }
    None
}

/// CPU seconds of a process and its children.
fn ran(process: u32) -> Option<f64> {
    Some(processes::cpu_seconds(&processes::from(process)?))
}

/// CPU seconds that others used on the shop's CPUs since the machine was started, less a constant.
fn busy(process: &Process<'_>, cpus: &[usize]) -> Option<f64> {
    // Where nothing is pinned, users and payment service are on the same CPUs and belong to the game.
    let ours = if process.cpus.is_empty() {
        std::process::id()
    } else {
        process.id
    };
    Some(processes::busy_seconds(cpus)? - ran(ours)?)
}

/// Threads of a process.
fn threads(process: u32) -> Option<BTreeMap<String, Thread>> {
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))
        .ok()?
        .flatten()
    {
        // Three numbers: nanoseconds on a CPU, nanoseconds waiting for one, time slices. A thread may have ended.
        let stat = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        let mut numbers = stat.split_ascii_whitespace().map(str::parse);
        if let (Some(Ok(ran)), Some(Ok(waited))) = (numbers.next(), numbers.next()) {
            let id = entry.file_name().to_string_lossy().into_owned();
            threads.insert(id, (ran, waited));
        }
    }
    if threads.is_empty() {
        return None;
    }
    Some(threads)
}

/// A count that grows by one with each transaction that changes an `SQLite` file: in the header of the index of its
/// write-ahead log (walformat, `iChange`), else in the header of the file (fileformat2, file change counter).
fn commits(database: &Path) -> Option<u32> {
    let mut index = database.as_os_str().to_owned();
    index.push("-shm");
    if let Some(header) = bytes_of(Path::new(&index), 8) {
        return Some(u32::from_ne_bytes(header));
    }
    Some(u32::from_be_bytes(bytes_of(database, 24)?))
}

fn bytes_of(file: &Path, after: usize) -> Option<[u8; 4]> {
    let mut header = [0; 28];
    File::open(file).ok()?.read_exact(&mut header).ok()?;
    header.get(after..after + 4)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(ran: f64, waited: f64, others: f64) -> Used {
        Used {
            ran,
            waited,
            others,
        }
    }

    #[test]
    fn a_shop_is_starved_by_others_and_not_by_its_own_threads() {
        // Sixteen threads on one CPU that nobody else uses.
        assert!(!used(15.0, 200.0, 0.3).is_starved());
        // Others run while the shop has nothing to do.
        assert!(!used(1.0, 0.05, 14.0).is_starved());
        assert!(used(6.0, 100.0, 9.0).is_starved());
        assert!((used(6.0, 100.0, 9.0).lost() - 0.6).abs() < 1e-9);
        assert!((used(0.0, 0.0, 0.0).lost()).abs() < 1e-9);
    }

    #[test]
    fn commits_are_counted_by_the_log_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("shop.db");
        assert_eq!(commits(&database), None);
        let mut header = [0; 100];
        header[24..28].copy_from_slice(&7_u32.to_be_bytes());
        fs::write(&database, header).unwrap();
        assert_eq!(commits(&database), Some(7));
        header[8..12].copy_from_slice(&9_u32.to_ne_bytes());
        fs::write(folder.path().join("shop.db-shm"), header).unwrap();
        assert_eq!(commits(&database), Some(9));
    }
}
