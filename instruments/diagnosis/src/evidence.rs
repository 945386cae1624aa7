//! Observations of a process, as plain data: instruments fill it, rules judge it.

mod file;
mod tasks;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub use ecosystem::{
    Answers, Frame, Line, Place, Release, Requests, Route, Sequence, Unpolled, innermost_line, path,
};
use serde::{Deserialize, Serialize};

pub use file::{Addresses, Unreadable, numbered};
pub use tasks::{Circle, Limit, Receiver, Spawned, Step, StepKind, TaskSet, Tasks, Way};

use crate::threads::{CpuSamples, Stack, State, ThreadProfile};
use crate::thresholds::{LITTLE_MEMORY, MOMENTS_OF_RISE, STEADY};

/// Place from which a process is observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// By the process itself, whose debug endpoints show more.
    #[default]
    Inside,
    /// By another process, which sees no requests.
    Outside,
}

/// Observations of a process during some time. A missing part was not observed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Length of the observation, in seconds.
    pub seconds: f64,
    /// Number of CPUs.
    pub cpus: usize,
    /// Mean number of CPUs that the process kept busy.
    pub cpus_used: f64,
    /// Mean number of CPUs that other programs kept busy, out of those that the process may use.
    pub cpus_of_others: Option<f64>,
    /// Outcomes of requests, and the places where they waited.
    pub requests: Option<Requests>,
    /// Profile of threads.
    #[serde(with = "file::shared")]
    pub threads: Option<Arc<ThreadProfile>>,
    /// Samples of the CPU time of threads.
    #[serde(with = "file::shared")]
    pub cpu: Option<Arc<CpuSamples>>,
    /// Async runtimes that were watched.
    pub runtimes: Vec<Runtime>,
    /// Memory and tasks.
    pub memory: Option<Memory>,
    /// Tasks: what they wait for, and who holds that.
    pub tasks: Option<Tasks>,
    /// TCP connections.
    pub connections: Option<Connections>,
    /// File descriptors.
    pub descriptors: Option<Descriptors>,
    /// The functions with most samples in a CPU profile of the same time.
    pub cpu_profile: Option<String>,
    /// Place from which the process was observed.
    pub view: View,
    /// Number and name of the process, if it was observed from outside.
    pub process: Option<NamedProcess>,
    /// Observations that are missing, each with the reason.
    pub not_seen: Vec<String>,
}

impl Evidence {
    /// Returns whether the CPUs are the limit: the process used nearly all of their time.
    pub fn is_cpu_limit(&self) -> bool {
        self.cpus_used >= crate::thresholds::CPU_LIMIT * self.cpus as f64
    }

    /// Returns how much of the CPU time that the process wanted went to other programs, from 0 to 1.
    ///
    /// Threads of a busy process also wait for each other, and other programs may run while no thread waits. So the lost
    /// time is the smaller of two: the time that threads waited for a CPU, and the time that other programs ran.
    pub fn cpu_lost(&self) -> f64 {
        let (Some(threads), Some(others)) = (&self.threads, self.cpus_of_others) else {
            return 0.0;
        };
        let mut waited = 0.0;
        for thread in &threads.threads {
            waited += thread.delayed_s;
        }
        let lost = others.min(waited / self.seconds);
        if lost > 0.0 {
            lost / (self.cpus_used + lost)
        } else {
            0.0
        }
    }

    /// Returns the number of connections to other services that were open at once; 1 if that is not known.
    pub fn open_upstreams(&self) -> usize {
        let mut open = 0;
        for peers in self.upstreams() {
            open += peers.most_open;
        }
        open.max(1)
    }

    /// Returns all stacks of threads, and those of the samples of the CPU time.
    pub(crate) fn stacks(&self) -> Vec<&Stack> {
        let mut stacks = Vec::new();
        if let Some(threads) = &self.threads {
            stacks.extend(threads.stacks());
        }
        if let Some(cpu) = &self.cpu {
            stacks.extend(cpu.stacks());
        }
        stacks
    }

    /// Returns the samples of the CPU time, or else the stacks of threads that run.
    pub(crate) fn running(&self) -> Vec<&Stack> {
        if let Some(cpu) = &self.cpu {
            return cpu.stacks().collect();
        }
        let mut stacks = self.stacks();
        stacks.retain(|stack| stack.state == State::Running);
        stacks
    }

    /// Returns the connections to other services; none if they were not observed.
    pub(crate) fn upstreams(&self) -> &[Peers] {
        match &self.connections {
            Some(connections) => &connections.upstreams,
            None => &[],
        }
    }

    /// Returns the share of the time in which threads that run requests had a CPU, of the time in which they wanted one;
    /// 1 if threads were not observed.
    pub(crate) fn cpu_share(&self) -> f64 {
        match &self.threads {
            Some(threads) => threads.cpu_share(),
            None => 1.0,
        }
    }
}

/// Process that was observed from outside.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedProcess {
    /// Its number.
    pub pid: u32,
    /// Its name, as the system keeps it.
    pub name: String,
}

/// One async runtime.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    /// Its name.
    pub name: String,
    /// Delay of the heartbeat's ticks at the 99th percentile, in seconds.
    pub late_p99: f64,
    /// Age of the last tick that was not answered yet, in seconds. A tick is a task that the heartbeat spawns.
    pub unanswered: f64,
    /// Longest time for which each worker did not yield, in seconds.
    pub held_worst: Vec<f64>,
    /// Share of the time in which its workers were busy, if that is known.
    pub busy: Option<f64>,
    /// Median wait of a job for a blocking thread, in seconds.
    pub blocking_wait_p50: f64,
    /// Worst wait of a job for a blocking thread, in seconds.
    pub blocking_wait_worst: f64,
    /// Age of the last job that has no blocking thread yet, in seconds.
    pub blocking_unanswered: f64,
}

/// A part of memory, or another number that may grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Value at the beginning.
    pub from: i64,
    /// Value at the end.
    pub to: i64,
    /// Smallest value of the last third minus the largest value of the first third.
    pub rise: i64,
    /// True if each half of the time has at least a quarter of the rise, over enough moments to rule out fluctuation.
    /// A single step, such as a peak that is kept, is not steady.
    pub is_steady: bool,
}

impl Part {
    /// Makes the part with these values, moment by moment.
    pub fn of(values: impl Iterator<Item = i64>) -> Self {
        let values: Vec<_> = values.collect();
        let third = values.len().div_ceil(3);
        let of_first = *values[..third].iter().max().unwrap_or(&0);
        let of_last = *values[values.len() - third..].iter().min().unwrap_or(&0);
        let rise = of_last - of_first;
        let end = values
            .len()
            .saturating_sub(third)
            .max(third.min(values.len()));
        let mut middle = values[third.min(values.len())..end].to_vec();
        middle.sort_unstable();
        let is_steady = match middle.get(middle.len() / 2) {
            Some(&median) if values.len() >= MOMENTS_OF_RISE => {
                let least = STEADY * rise as f64;
                (median - of_first) as f64 >= least && (of_last - median) as f64 >= least
            }
            _ => false,
        };
        Self {
            from: values.first().copied().unwrap_or_default(),
            to: values.last().copied().unwrap_or_default(),
            rise,
            is_steady,
        }
    }

    /// Returns whether it rises steadily, and by more than `least`.
    pub fn rises_by_more_than(self, least: i64) -> bool {
        self.rise > least && self.is_steady
    }

    /// Returns the difference between end and beginning.
    pub fn growth(self) -> i64 {
        self.to - self.from
    }

    /// Returns whether it grows, as bytes of memory: by more than a twentieth, and by more than [`LITTLE_MEMORY`].
    pub fn grows(self) -> bool {
        self.rises_by_more_than(LITTLE_MEMORY.max(self.from / 20))
    }
}

/// Memory and tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Length of the observation, in seconds.
    pub seconds: f64,
    /// Live memory in bytes, or resident memory if the allocator does not count what is live.
    pub live: Part,
    /// Tasks of the watched runtimes.
    pub tasks: Part,
    /// A sentence that says which part grows.
    pub says: String,
    /// Lines that allocated memory during the observation which was not freed, those with most bytes first; none if the service's
    /// allocator does not tell.
    pub kept: Vec<Kept>,
}

/// Memory that stayed, by the line that allocated it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// The line, with its function.
    pub at: String,
    /// Estimated bytes, from samples.
    pub bytes: u64,
}

/// TCP connections of the process, and its UDP sockets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Length of the observation, in seconds.
    pub seconds: f64,
    /// Number of looks at the descriptors.
    pub looks: u32,
    /// Connections that the whole network namespace opened, by the kernel's count.
    pub namespace_opened: Option<u64>,
    /// Connections that the whole network namespace accepted, by the kernel's count.
    pub namespace_accepted: Option<u64>,
    /// Datagrams that the whole network namespace read, by the kernel's count.
    pub namespace_datagrams: Option<u64>,
    /// Connections of the whole network namespace that failed before they were established, by the kernel's count.
    pub namespace_failed: Option<u64>,
    /// Connections to other services.
    pub upstreams: Vec<Peers>,
    /// Connections from clients.
    pub listeners: Vec<Peers>,
    /// UDP sockets.
    pub datagrams: Vec<Datagrams>,
}

/// UDP sockets on one port of this process, or those that are connected to one remote address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Datagrams {
    /// The remote address, or the port of this process.
    pub address: String,
    /// True if the sockets are connected, so that `address` is that of the other end.
    pub is_connected: bool,
    /// Number of the sockets.
    pub sockets: usize,
    /// Number of them for which the kernel dropped datagrams.
    pub lossy: usize,
    /// Datagrams that the kernel dropped because a socket's buffer was full, or because they were damaged.
    pub dropped: u64,
    /// Share of the looks at which received datagrams waited, between 0 and 1. If some of the sockets lost datagrams, this is of
    /// those alone, and so is `is_read`.
    pub unread_share: f64,
    /// Most bytes of memory that waiting datagrams took on one of them. A small datagram takes some hundred bytes.
    pub most_unread: u32,
    /// Bytes that the smallest of their buffers takes, if that is known.
    pub buffer: Option<u32>,
    /// True if datagrams were taken out of one of them between two looks, as far as these show.
    pub is_read: bool,
}

impl Connections {
    /// Returns the number of connections that failed before they were established. Evidence without that count has those
    /// that were opened and never accepted, if all other ends are on this machine.
    pub(crate) fn failed(&self) -> Option<u64> {
        if self.namespace_failed.is_some() {
            return self.namespace_failed;
        }
        let mut upstreams = self.upstreams.iter();
        let are_local = upstreams.all(|peers| {
            let address: Result<SocketAddr, _> = peers.address.parse();
            address.is_ok_and(|address| address.ip().is_loopback())
        });
        let (opened, accepted) = (self.namespace_opened?, self.namespace_accepted?);
        are_local.then(|| opened.saturating_sub(accepted))
    }
}

/// Connections to one remote address, or to one port of this process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Peers {
    /// The remote address, or the port of this process.
    pub address: String,
    /// Connections open at the end.
    pub open: usize,
    /// Most connections open at once.
    pub most_open: usize,
    /// Growth of the number of open connections.
    pub growth: Option<Part>,
    /// Connections that were seen to begin; short ones may have been missed.
    pub opened: usize,
    /// Connections that began each second.
    pub opened_per_second: f64,
    /// Further new connections that were only seen after they had ended (`TIME_WAIT`); they may be another process's.
    pub ended: usize,
    /// Connections of which this process closed its end first (`TIME_WAIT` is on that side).
    pub closed_here: usize,
    /// Most connections that had Nagle's algorithm on at once.
    pub without_nodelay: usize,
    /// Looks at a connection with written data that was not yet acknowledged.
    pub queued_looks: u32,
    /// Number of `queued_looks` in which Nagle's algorithm alone had held a small piece back for long.
    pub held_looks: u32,
    /// Looks at which connections waited to be accepted.
    pub unaccepted_looks: u32,
    /// Most connections that waited to be accepted at once.
    pub most_unaccepted: u32,
    /// Mean of the kernel's round-trip estimates, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Connections whose received data had waited at the end for a large share of the looks
    /// ([`UNREAD_SHARE`](crate::thresholds::UNREAD_SHARE)), with none of it read.
    pub unread: usize,
    /// Most bytes that waited on one of them.
    pub most_unread: u32,
    /// Connections on which much that was written waited to be taken at as many looks
    /// ([`SLOW_CLIENT_BYTES`](crate::thresholds::SLOW_CLIENT_BYTES)).
    pub untaken: usize,
    /// Most bytes that waited for one of them.
    pub most_untaken: u32,
}

/// File descriptors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Descriptors {
    /// Most descriptors that may be open at once (`RLIMIT_NOFILE`).
    pub limit: u64,
    /// Most descriptors that were open at once.
    pub most_open: u64,
    /// Looks that failed because none was left.
    pub none_left: u32,
    /// Descriptors open at the last look, by kind: files, sockets, pipes, event polls.
    pub by_kind: BTreeMap<String, u64>,
    /// Files open at the last look, by the name of their folder.
    pub by_folder: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_no_steady_rise() {
        let line = Part::of(0..12);
        assert!(line.rise == 5 && line.is_steady, "{line:?}");
        for at in 0..=12 {
            let step = Part::of((0..12).map(|moment| i64::from(moment >= at) * 1000));
            assert!(!step.rises_by_more_than(1), "at {at}: {step:?}");
        }
        let bent = |middle: i64| {
            let values = [[0; 3], [middle; 3], [100; 3]];
            Part::of(values.into_iter().flatten()).is_steady
        };
        #[allow(clippy::cast_possible_truncation)]
        let least = (STEADY * 100.0) as i64;
        assert!(bent(least) && !bent(least - 1), "the first half");
        let few = i64::try_from(MOMENTS_OF_RISE).unwrap();
        assert!(Part::of(0..few).is_steady && !Part::of(0..few - 1).is_steady);
        assert!(bent(100 - least) && !bent(101 - least), "the second half");
    }
}
