//! Who reads whose memory, seen in a small machine with several NUMA nodes.
//!
//! The machine is emulated, so nothing here is a time. It is all counts: pages by region, loads by
//! the region of CPU and memory, workers by CPU. No noise touches a count, so one run of
//! each variant is enough, and the judgement needs no statistics.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::record::Commit;

/// The least share of loads and pages that are local when each worker reads its region's copy.
pub const LOCAL_AT_LEAST: f64 = 0.99;

/// Counts up to it are exact as `f64`.
const MOST: u64 = 1 << 53;

/// Everything that was seen, and what it takes to see it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The command that repeats it.
    pub command: String,
    /// Start of the run, UTC.
    pub started: String,
    /// The code.
    pub commit: Commit,
    /// Versions of QEMU, the machine's kernel and the compiler.
    pub tools: BTreeMap<String, String>,
    /// NUMA nodes of the machine.
    pub regions: u32,
    /// CPUs of the machine.
    pub cpus: u32,
    /// What the service was asked to keep, and the load on it.
    pub load: Load,
    /// The variants, problem first.
    pub variants: Vec<Seen>,
}

/// The data set and the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Texts in the data set.
    pub texts: u32,
    /// Connections for each CPU.
    pub connections: u32,
    /// Requests on each connection, one after the other.
    pub requests: u32,
}

/// What was seen of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub variant: String,
    /// Right answers.
    pub answers: u64,
    /// Memory of the service at the end, in KiB.
    pub resident_kib: u64,
    /// What the service and the machine's kernel say.
    pub placement: Placement,
    /// What the emulator counted: loads from the copies that were read, by the region of the
    /// CPU and then by the region of the memory.
    pub loads: Vec<Vec<u64>>,
}

/// The answer of `/debug/placement`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The region of each CPU.
    pub regions: Vec<u32>,
    /// Copies of the data set that are in memory.
    pub copies: Vec<Copy>,
    /// Threads that have read.
    pub readers: Vec<Reader>,
}

/// A copy of the data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Copy {
    /// Its number, by which readers name it.
    pub number: usize,
    /// Where it begins, and how long it is.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// The region of the thread that wrote it.
    pub built_in_region: u32,
    /// Whether that thread was bound to one CPU.
    pub built_by_pinned: bool,
    /// Its pages by region, where the system told.
    pub pages: Option<BTreeMap<u32, u64>>,
}

/// A thread that has read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reader {
    /// The only CPU that it may run on, if there is but one.
    pub pinned_to: Option<usize>,
    /// How often it has read.
    pub reads: u64,
    /// How often as a bound thread, from a copy that a bound thread of its region has written.
    pub at_home: u64,
    /// How often it ended a read on another CPU than it began it on.
    pub moved: u64,
    /// From where it has read what.
    pub from: Vec<Reads>,
}

/// Reads of one thread on one CPU from one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// The CPU.
    pub cpu: usize,
    /// The copy's number.
    pub copy: usize,
    /// How many.
    pub reads: u64,
}

impl Placement {
    /// Whether its counts can be added up, and the copies' ends be told: no machine counts so far that
    /// they cannot.
    pub fn is_countable(&self) -> bool {
        let reads = self.readers.iter().flat_map(|reader| {
            let from = reader.from.iter().map(|reads| reads.reads);
            from.chain([reader.reads, reader.at_home, reader.moved])
        });
        let pages = self.copies.iter().flat_map(|copy| &copy.pages);
        let pages = pages.flat_map(|pages| pages.values().copied());
        let ends = self.copies.iter();
        let mut ends = ends.map(|copy| copy.address.checked_add(copy.bytes));
        let all = reads.chain(pages).fold(0, u64::saturating_add);
        all <= MOST && ends.all(|end| end.is_some())
    }
}

impl Seen {
    /// Share (0 to 1) of the loads from the data set that were answered by the CPU's own
    /// region, by the emulator's count.
    pub fn local_loads(&self) -> Option<f64> {
        let all: u64 = self.loads.iter().flatten().sum();
        let local: u64 = self
            .loads
            .iter()
            .enumerate()
            .filter_map(|(region, by_memory)| by_memory.get(region))
            .sum();
        (all > 0).then(|| local as f64 / all as f64)
    }

    /// Share (0 to 1) of the pages that a reader read, on average over all reads, that lie in the
    /// reader's region, by the kernel's word.
    pub fn local_pages(&self) -> Option<f64> {
        let (mut local, mut all) = (0.0, 0_u64);
        for reads in self.reads() {
            let copy = self.copy(reads.copy)?;
            let pages = copy.pages.as_ref()?;
            let region = self.placement.regions.get(reads.cpu)?;
            let own = pages.get(region).copied().unwrap_or(0);
            let total: u64 = pages.values().sum();
            local += reads.reads as f64 * own as f64 / total.max(1) as f64;
            all += reads.reads;
        }
        (all > 0).then(|| local / all as f64)
    }

    /// Readers that stayed on the one CPU that they were bound to, each on another one.
    pub fn pinned_readers(&self) -> usize {
        let mut taken = BTreeSet::new();
        let readers = self.placement.readers.iter();
        readers
            .filter(|reader| {
                let Some(cpu) = reader.pinned_to else {
                    return false;
                };
                let stayed = reader.from.iter().all(|reads| reads.cpu == cpu);
                stayed && reader.moved == 0 && taken.insert(cpu)
            })
            .count()
    }

    /// Threads that have read anything.
    pub fn readers(&self) -> usize {
        let readers = self.placement.readers.iter();
        readers.filter(|reader| reader.reads > 0).count()
    }

    /// The regions that have a copy of their own: one that somebody reads, all whose readers and
    /// nearly all whose pages are there.
    pub fn regions_with_a_copy(&self) -> usize {
        let mut regions = BTreeSet::new();
        for copy in &self.placement.copies {
            let from: BTreeSet<Option<u32>> = self
                .reads()
                .filter(|reads| reads.copy == copy.number)
                .map(|reads| self.placement.regions.get(reads.cpu).copied())
                .collect();
            let mut from = from.into_iter();
            if let (Some(Some(region)), None, Some(pages)) = (from.next(), from.next(), &copy.pages)
            {
                let own = pages.get(&region).copied().unwrap_or(0);
                let total: u64 = pages.values().sum();
                if own as f64 >= LOCAL_AT_LEAST * total as f64 {
                    regions.insert(region);
                }
            }
        }
        regions.len()
    }

    /// Copies of the data set in memory.
    pub fn copies(&self) -> usize {
        self.placement.copies.len()
    }

    /// The copies that somebody has read.
    pub fn copies_read(&self) -> impl Iterator<Item = &Copy> {
        let read: BTreeSet<usize> = self.reads().map(|reads| reads.copy).collect();
        let copies = self.placement.copies.iter();
        copies.filter(move |copy| read.contains(&copy.number))
    }

    fn reads(&self) -> impl Iterator<Item = Reads> {
        let readers = self.placement.readers.iter();
        readers.flat_map(|reader| reader.from.iter().copied())
    }

    fn copy(&self, number: usize) -> Option<&Copy> {
        let mut copies = self.placement.copies.iter();
        copies.find(|copy| copy.number == number)
    }
}

impl Record {
    /// What was seen of a variant.
    pub fn seen(&self, variant: &str) -> Option<&Seen> {
        self.variants.iter().find(|seen| seen.variant == variant)
    }

    /// The share of loads that is local when readers and memory know nothing of each other.
    pub fn by_chance(&self) -> f64 {
        1.0 / f64::from(self.regions.max(1))
    }

    /// Most of the problem's loads that may be local. Chance would have it that one in so many
    /// regions is; its workers are where the scheduler puts them, so half as many again may be.
    pub fn problem_at_most(&self) -> f64 {
        1.5 * self.by_chance()
    }
}
