//! The record of a run: counts only, since an emulated machine's times mean nothing.
//!
//! Noise does not change a count, so one run of each variant is enough. In JSON a node is called a
//! `region`, as in the reports of the service, from which it comes.

use std::collections::{BTreeMap, BTreeSet};

use course::measurement::record::Inputs;
use serde::{Deserialize, Serialize};

/// The least share of loads and pages that are local when each worker reads its node's copy.
pub const LOCAL_AT_LEAST: f64 = 0.99;

/// Everything that was observed, and what it takes to observe it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The command that repeats it.
    pub command: String,
    /// Start of the run, UTC.
    pub started: String,
    /// The code.
    pub inputs: Inputs,
    /// Versions of QEMU, the machine's kernel and the compiler.
    pub tools: BTreeMap<String, String>,
    /// NUMA nodes of the machine.
    #[serde(rename = "regions")]
    pub nodes: u32,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Size of the data set, and the load on the service.
    pub load: Load,
    /// The problem, other variants in between, the fix.
    pub variants: Vec<Variant>,
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

/// The counts of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    #[serde(rename = "variant")]
    pub name: String,
    /// Right answers.
    pub answers: u64,
    /// Memory of the service at the end, in KiB.
    pub resident_kib: u64,
    /// Report of the service, with the pages as the machine's kernel places them.
    pub placement: Placement,
    /// Loads from the copies that were read, by the node of the CPU and then by the node of the
    /// memory, as the emulator counted them.
    pub loads: Vec<Vec<u64>>,
}

/// The answer of `/debug/placement`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The node of each CPU.
    #[serde(rename = "regions")]
    pub nodes: Vec<u32>,
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
    /// Address of its first byte.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// The node of the thread that wrote it.
    #[serde(rename = "built_in_region")]
    pub built_in_node: u32,
    /// `true` if that thread was pinned to one CPU.
    pub built_by_pinned: bool,
    /// Its pages by node, where the system tells.
    pub pages: Option<BTreeMap<u32, u64>>,
}

/// A thread that has read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reader {
    /// The only CPU that it may run on, if there is but one.
    pub pinned_to: Option<usize>,
    /// Number of its reads.
    pub reads: u64,
    /// Number of reads as a pinned thread, from a copy that a pinned thread of the same node wrote.
    pub at_home: u64,
    /// Number of reads that ended on another CPU than they began on.
    pub moved: u64,
    /// Its reads by CPU and copy.
    pub from: Vec<Reads>,
}

/// Reads of one thread on one CPU from one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// The CPU.
    pub cpu: usize,
    /// The copy's number.
    pub copy: usize,
    /// Number of these reads.
    pub reads: u64,
}

impl Record {
    /// The variant of this name.
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The share of loads that is local when readers and memory know nothing of each other.
    pub fn local_by_chance(&self) -> f64 {
        1.0 / f64::from(self.nodes.max(1))
    }

    /// Most of the problem's loads that may be local. Its workers are where the scheduler puts them,
    /// so half as many again as by chance may be.
    pub fn problem_at_most(&self) -> f64 {
        1.5 * self.local_by_chance()
    }
}

impl Variant {
    /// Share (0 to 1) of the loads from the data set that the CPU's own node answered, by the
    /// emulator's count.
    pub fn local_loads(&self) -> Option<f64> {
        let (mut local, mut all) = (0_u64, 0_u64);
        for (node, loads) in self.loads.iter().enumerate() {
            local += loads.get(node).unwrap_or(&0);
            all += loads.iter().sum::<u64>();
        }
        share(local as f64, all)
    }

    /// Share (0 to 1) of the pages that a reader read, on average over all reads, that lie in the
    /// reader's node, by the kernel's word.
    pub fn local_pages(&self) -> Option<f64> {
        let (mut local, mut all) = (0.0, 0);
        for reads in self.reads() {
            let mut copies = self.placement.copies.iter();
            let copy = copies.find(|copy| copy.number == reads.copy)?;
            let node = self.placement.nodes.get(reads.cpu)?;
            local += reads.reads as f64 * copy.share_in(*node)?;
            all += reads.reads;
        }
        share(local, all)
    }

    /// Readers that stayed on the one CPU that they were bound to, each on another one.
    pub fn pinned_readers(&self) -> usize {
        let mut cpus = BTreeSet::new();
        for reader in &self.placement.readers {
            if let Some(cpu) = reader.pinned_to
                && reader.moved == 0
                && reader.from.iter().all(|reads| reads.cpu == cpu)
            {
                cpus.insert(cpu);
            }
        }
        cpus.len()
    }

    /// Threads that have read anything.
    pub fn readers(&self) -> usize {
        let readers = self.placement.readers.iter();
        readers.filter(|reader| reader.reads > 0).count()
    }

    /// The nodes that have a copy of their own: one that somebody reads, all whose readers and nearly
    /// all whose pages are there.
    pub fn nodes_with_a_copy(&self) -> usize {
        let mut own = BTreeSet::new();
        for copy in &self.placement.copies {
            if let Some(node) = self.node_of_readers(copy.number)
                && let Some(share) = copy.share_in(node)
                && share >= LOCAL_AT_LEAST
            {
                own.insert(node);
            }
        }
        own.len()
    }

    /// Returns the node from which a copy is read; `None` if nobody reads it, or if readers are on several nodes.
    fn node_of_readers(&self, copy: usize) -> Option<u32> {
        let mut readers = None;
        for reads in self.reads() {
            if reads.copy != copy {
                continue;
            }
            let node = *self.placement.nodes.get(reads.cpu)?;
            if *readers.get_or_insert(node) != node {
                return None;
            }
        }
        readers
    }

    /// The copies that somebody has read.
    pub fn copies_read(&self) -> impl Iterator<Item = &Copy> {
        let copies = self.placement.copies.iter();
        copies.filter(|copy| self.reads().any(|reads| reads.copy == copy.number))
    }

    fn reads(&self) -> impl Iterator<Item = &Reads> {
        let readers = self.placement.readers.iter();
        readers.flat_map(|reader| &reader.from)
    }
}

/// Returns `part / all`; `None` if there is nothing.
fn share(part: f64, all: u64) -> Option<f64> {
    if all == 0 {
        return None;
    }
    Some(part / all as f64)
}

impl Copy {
    /// Share (0 to 1) of its pages that lie in this node.
    fn share_in(&self, node: u32) -> Option<f64> {
        let pages = self.pages.as_ref()?;
        let all: u64 = pages.values().sum();
        Some(*pages.get(&node).unwrap_or(&0) as f64 / all.max(1) as f64)
    }
}
