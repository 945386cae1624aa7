//! Which thread reads which copy of the data, and on which NUMA node.
//!
//! A chapter that copies its data to several nodes keeps a [`Replica`] with each copy, and holds a
//! [`Reading`] while it reads. `/metrics` then says which share of the reads was local, and
//! `/debug/placement` lists all copies and readers. Each thread counts its own reads, so that counting
//! shares no memory. The JSON calls a NUMA node a region, as the crate `region_cached` does.

mod here;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

pub(crate) use self::here::{Here, Thread};
use crate::metric::Metric;

/// The copies and readers of the whole process.
static COPIES: Mutex<Vec<Arc<Notes>>> = Mutex::new(Vec::new());
static READERS: Mutex<Vec<Arc<Mutex<Reader>>>> = Mutex::new(Vec::new());

thread_local! {
    static READER: Arc<Mutex<Reader>> = {
        let reader = Arc::new(Mutex::new(Reader::default()));
        locked(&READERS).push(Arc::clone(&reader));
        reader
    };
}

/// Reads of each thread of which it is known when they were: so many are more than enough to see whether
/// threads read side by side.
const REMEMBERED: usize = 4096;

/// Pages of a copy that are looked up for one answer of `/debug/placement`.
const SAMPLE: usize = 4096;

/// Notes of one copy of the data: where it was built, and whether by a pinned thread.
#[derive(Debug)]
pub struct Replica(Arc<Notes>);

#[derive(Debug)]
struct Notes {
    number: usize,
    address: usize,
    bytes: usize,
    built: Here,
    is_there: AtomicBool,
}

impl Replica {
    /// `bytes` are a new copy, which the calling thread has just written.
    pub fn built(bytes: &[u8]) -> Self {
        let mut copies = locked(&COPIES);
        let notes = Arc::new(Notes {
            number: copies.len(),
            address: bytes.as_ptr() as usize,
            bytes: bytes.len(),
            built: Here::now(),
            is_there: AtomicBool::new(true),
        });
        copies.push(Arc::clone(&notes));
        Self(notes)
    }

    /// The calling thread reads the copy until what this returns is dropped.
    pub fn read(&self) -> Reading<'_> {
        Reading {
            copy: &self.0,
            began: Here::now(),
            at: Instant::now(),
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.0.is_there.store(false, Ordering::Relaxed);
    }
}

/// One read of a copy.
#[derive(Debug)]
pub struct Reading<'a> {
    copy: &'a Notes,
    began: Here,
    at: Instant,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let ended = Here::now();
        let built = self.copy.built;
        // At home: the reader was pinned to one CPU for the whole read, and a pinned thread of the
        // same node wrote the copy. An unpinned reader that happens to be there is not at home.
        let at_home =
            self.began == ended && ended.pinned && built.pinned && ended.node == built.node;
        READER.with(|reader| {
            let mut reader = locked(reader);
            reader.reads += 1;
            reader.at_home += u64::from(at_home);
            reader.moved += u64::from(self.began.cpu != ended.cpu);
            reader.pinned_to = ended.pinned.then_some(ended.cpu);
            reader.thread.get_or_insert_with(Thread::current);
            if reader.last.len() == REMEMBERED {
                reader.last.pop_front();
            }
            reader.last.push_back((self.at, Instant::now()));
            *reader
                .from
                .entry((ended.cpu, self.copy.number))
                .or_default() += 1;
        });
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// The only CPU that the system lets it run on, if there is but one.
    pinned_to: Option<usize>,
    reads: u64,
    at_home: u64,
    /// Reads that ended on another CPU than they began on.
    moved: u64,
    /// Reads by CPU and copy.
    from: BTreeMap<(usize, usize), u64>,
    /// Of the last reads, when they began and ended.
    last: VecDeque<(Instant, Instant)>,
    thread: Option<Thread>,
}

/// What `/metrics` tells; all zero while no chapter has noted any copy.
pub(crate) fn metrics() -> Vec<Metric> {
    let Counts {
        reads,
        at_home,
        copies,
        readers,
        copies_a_node,
        copies_unread,
        readers_loose,
        reads_at_once,
    } = counts();
    vec![
        Metric::count(
            "data_copies",
            "Copies of the data set in memory",
            copies as u64,
        ),
        Metric::count("data_reads_total", "Reads of a copy", reads),
        Metric::ratio(
            "data_reads_at_home_share",
            "Reads by a thread pinned to one CPU, of a copy that a pinned thread of the same NUMA node wrote",
            at_home as f64 / reads.max(1) as f64,
        ),
        Metric::count(
            "data_readers",
            "Threads that read a copy, of which those pinned to the same CPU count as one",
            readers as u64,
        ),
        Metric::count(
            "data_copies_read_in_a_node_peak",
            "Most copies that were read in the same NUMA node",
            copies_a_node as u64,
        ),
        Metric::count(
            "data_copies_unread",
            "Copies in memory that no thread has read",
            copies_unread as u64,
        ),
        Metric::count(
            "data_readers_loose",
            "Threads that have read a copy and may run on several CPUs now",
            readers_loose as u64,
        ),
        Metric::count(
            "data_reads_running_peak",
            "Most reads at once, of the last 4096 of each thread",
            reads_at_once as u64,
        ),
    ]
}

struct Counts {
    reads: u64,
    at_home: u64,
    copies: usize,
    /// Threads that read, of which those pinned to the same CPU count as one.
    readers: usize,
    /// Most copies that were read in one node.
    copies_a_node: usize,
    copies_unread: usize,
    /// Threads that read, and that the system lets run on several CPUs by now.
    readers_loose: usize,
    /// Most at the same time, of those that are remembered.
    reads_at_once: usize,
}

fn counts() -> Counts {
    let copies = locked(&COPIES);
    let mut counts = Counts {
        reads: 0,
        at_home: 0,
        copies: copies.iter().filter(|copy| copy.is_there()).count(),
        readers: 0,
        copies_a_node: 0,
        copies_unread: 0,
        readers_loose: 0,
        reads_at_once: 0,
    };
    let nodes = here::cpu_nodes();
    let mut pinned_to = BTreeSet::new();
    let mut read: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    // A read that begins when another one ends comes after it.
    let mut moments: Vec<(Instant, isize)> = Vec::new();
    for reader in locked(&READERS).iter() {
        let reader = locked(reader);
        counts.reads += reader.reads;
        counts.at_home += reader.at_home;
        counts.readers += match reader.pinned_to {
            _ if reader.reads == 0 => 0,
            Some(cpu) => usize::from(pinned_to.insert(cpu)),
            None => 1,
        };
        let thread = reader.thread.as_ref();
        counts.readers_loose += usize::from(thread.is_some_and(Thread::is_loose));
        for &(began, ended) in &reader.last {
            moments.extend([(began, 1), (ended, -1)]);
        }
        for &(cpu, copy) in reader.from.keys() {
            let node = nodes.get(cpu).copied().unwrap_or(0);
            read.entry(node).or_default().insert(copy);
        }
    }
    counts.copies_a_node = read.values().map(BTreeSet::len).max().unwrap_or(0);
    let was_read = |copy: &Notes| read.values().any(|copies| copies.contains(&copy.number));
    let unread = copies
        .iter()
        .filter(|copy| copy.is_there() && !was_read(copy));
    counts.copies_unread = unread.count();
    moments.sort_unstable();
    let at_once = moments.iter().scan(0, |running, (_, step)| {
        *running += step;
        Some(*running)
    });
    counts.reads_at_once = at_once.max().unwrap_or(0).unsigned_abs();
    counts
}

impl Notes {
    fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }
}

/// What `/debug/placement` tells: everything that was noted.
pub(crate) fn placement() -> Value {
    let copies: Vec<Value> = locked(&COPIES)
        .iter()
        .filter(|copy| copy.is_there())
        .map(|copy| {
            json!({
                "number": copy.number,
                "address": copy.address,
                "bytes": copy.bytes,
                "built_in_region": copy.built.node,
                "built_by_pinned": copy.built.pinned,
                // From a sample; nothing where the system does not tell.
                "pages": page_regions::regions_at(copy.address, copy.bytes, SAMPLE),
            })
        })
        .collect();
    let readers: Vec<Value> = locked(&READERS)
        .iter()
        .map(|reader| {
            let reader = locked(reader);
            let from: Vec<Value> = reader
                .from
                .iter()
                .map(|((cpu, copy), reads)| json!({ "cpu": cpu, "copy": copy, "reads": reads }))
                .collect();
            json!({
                "pinned_to": reader.pinned_to,
                "reads": reader.reads,
                "at_home": reader.at_home,
                "moved": reader.moved,
                "from": from,
            })
        })
        .collect();
    json!({ "regions": here::cpu_nodes(), "copies": copies, "readers": readers })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because the notes are the process's.
    #[test]
    fn only_a_bound_reader_of_a_copy_by_a_bound_builder_is_at_home() {
        let loose = vec![1_u8; 1 << 16];
        let loose = (Replica::built(&loose), loose);
        drop(loose.0.read());
        if !Here::now().pinned {
            let seen = counts();
            assert_eq!((seen.reads, seen.at_home), (1, 0));
        }
        let bound = std::thread::spawn(|| {
            let is_bound = here::pin_to_this_cpu();
            let bytes = vec![1_u8; 1 << 16];
            let copy = Replica::built(&bytes);
            let before = locked(&READERS).len();
            drop(copy.read());
            let readers = locked(&READERS);
            let at_home = locked(&readers[before]).at_home;
            (is_bound, at_home)
        });
        if let Ok((true, at_home)) = bound.join() {
            assert_eq!(at_home, 1);
        }
        // The thread's copy is gone by now.
        let seen = counts();
        assert_eq!((seen.reads, seen.copies), (2, 1));
        assert!((1..=2).contains(&seen.readers), "{}", seen.readers);
        assert!((1..=2).contains(&seen.copies_a_node));
        assert_eq!(placement()["copies"][0]["number"], 0);
    }
}
