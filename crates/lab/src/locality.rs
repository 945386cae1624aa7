//! Record of the threads that read each copy of the data, and of their NUMA nodes.
//!
//! A chapter that copies its data to several nodes keeps each copy in a [`Replica`], and reads it through that.
//! `/metrics` then reports the share of local reads, and `/debug/placement` lists all
//! copies and readers. Each thread counts its own reads, so that counting shares no memory. The JSON
//! calls a NUMA node a region, as the crate `region_cached` does.

mod here;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub(crate) use self::here::Here;
use crate::locked;
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

/// Pages of a copy that are looked up for one answer of `/debug/placement`.
const SAMPLE: usize = 4096;

/// A copy of the data in one allocation, so that all its pages lie on the NUMA node of the thread that wrote it. It
/// records the CPU of that thread, and the CPUs of its readers. A clone is another copy.
#[derive(Debug)]
pub struct Replica {
    bytes: Box<[u8]>,
    notes: Arc<Notes>,
}

#[derive(Debug)]
struct Notes {
    number: usize,
    address: usize,
    bytes: usize,
    built: Here,
    is_there: AtomicBool,
}

impl From<Vec<u8>> for Replica {
    /// Wraps a copy that the calling thread has just written.
    fn from(bytes: Vec<u8>) -> Self {
        let bytes = bytes.into_boxed_slice();
        let mut copies = locked(&COPIES);
        let notes = Arc::new(Notes {
            number: copies.len(),
            address: bytes.as_ptr() as usize,
            bytes: bytes.len(),
            built: Here::now(),
            is_there: AtomicBool::new(true),
        });
        copies.push(Arc::clone(&notes));
        Self { bytes, notes }
    }
}

impl Clone for Replica {
    fn clone(&self) -> Self {
        self.bytes.to_vec().into()
    }
}

impl Replica {
    /// Reads the copy on the calling thread, and counts that.
    pub fn read<T>(&self, how: impl FnOnce(&[u8]) -> T) -> T {
        let began = Here::now();
        let result = how(&self.bytes);
        self.notes.note_read(began, Here::now());
        result
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.notes.is_there.store(false, Ordering::Relaxed);
    }
}

impl Notes {
    fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Notes that the calling thread has read the copy.
    fn note_read(&self, began: Here, ended: Here) {
        let built = self.built;
        // At home: the reader was pinned to one CPU for the whole read, and a pinned thread of the
        // same node wrote the copy. An unpinned reader that happens to be there is not at home.
        let at_home = began == ended && ended.pinned && built.pinned && ended.node == built.node;
        READER.with(|reader| {
            let mut reader = locked(reader);
            reader.reads += 1;
            reader.at_home += u64::from(at_home);
            reader.moved += u64::from(began.cpu != ended.cpu);
            reader.pinned_to = ended.pinned.then_some(ended.cpu);
            *reader.from.entry((ended.cpu, self.number)).or_default() += 1;
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
}

/// Returns the metrics for `/metrics`; all are zero until a [`Replica`] is read.
pub(crate) fn metrics() -> Vec<Metric> {
    let nodes = here::cpu_nodes();
    let (mut reads, mut at_home, mut readers) = (0, 0, 0);
    let mut pinned_to = BTreeSet::new();
    let mut read: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for reader in locked(&READERS).iter() {
        let reader = locked(reader);
        reads += reader.reads;
        at_home += reader.at_home;
        readers += match reader.pinned_to {
            _ if reader.reads == 0 => 0,
            Some(cpu) => u64::from(pinned_to.insert(cpu)),
            None => 1,
        };
        for &(cpu, copy) in reader.from.keys() {
            let node = nodes.get(cpu).copied().unwrap_or(0);
            read.entry(node).or_default().insert(copy);
        }
    }
    let copies_a_node = read.values().map(BTreeSet::len).max().unwrap_or(0);
    vec![
        Metric::gauge(
            "data_reads_at_home_share",
            "Reads by a thread pinned to one CPU, of a copy that a pinned thread of the same NUMA node wrote",
            at_home as f64 / reads.max(1) as f64,
        ),
        Metric::count(
            "data_readers",
            "Threads that read a copy, of which those pinned to the same CPU count as one",
            readers,
        ),
        Metric::count(
            "data_copies_read_in_a_node_peak",
            "Most copies that were read in the same NUMA node",
            copies_a_node as u64,
        ),
    ]
}

/// Returns the content of `/debug/placement`: all copies in memory and all readers.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because the notes are the process's.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_bound_reader_of_a_copy_by_a_bound_builder_is_at_home() {
        let read = |binds: bool| {
            let reader = std::thread::spawn(move || {
                if binds {
                    let mut only = rustix::thread::CpuSet::new();
                    only.set(Here::now().cpu);
                    rustix::thread::sched_setaffinity(None, &only).expect("its own CPU");
                }
                let is_bound = Here::now().pinned;
                let copy = Replica::from(vec![1_u8; 1 << 16]);
                assert_eq!(copy.read(|bytes| bytes[0]), 1);
                let at_home = READER.with(|reader| locked(reader).at_home);
                assert_eq!(at_home, u64::from(is_bound));
                placement()["copies"].as_array().map(Vec::len)
            });
            reader.join().expect("it reads")
        };
        // The thread's copy goes with it.
        assert_eq!([read(false), read(true)], [Some(1); 2]);
    }
}
