//! Samples of the CPU time of threads, with names.

use serde::{Deserialize, Serialize};

use super::profile::{Hold, Stack};

/// Samples of the CPU time that the threads of a process used.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CpuSamples {
    /// CPU time that a sample stands for, in seconds.
    pub period_s: f64,
    /// Threads with at least one sample.
    pub threads: Vec<CpuThread>,
}

/// A sample of a thread's CPU time.
#[derive(Clone, Copy, Debug)]
pub struct CpuMoment {
    /// Number of its stack.
    pub stack: usize,
    /// Number of times that the thread had slept by then.
    pub slept: u64,
    /// Periods of CPU time that it stands for.
    pub periods: u64,
}

/// Samples of one thread's CPU time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CpuThread {
    /// True if it drives tasks of a runtime.
    pub is_runtime: bool,
    /// True if a request that await profiles see began on it.
    pub began_requests: bool,
    /// Its stacks, all of them running.
    pub stacks: Vec<Stack>,
    /// The longest times that it was seen in one function without sleeping in between.
    pub holds: Vec<Hold>,
}

impl CpuSamples {
    /// Returns the stacks of threads that drive tasks.
    pub(crate) fn of_tasks(&self) -> impl Iterator<Item = &Stack> {
        let threads = self.threads.iter().filter(|thread| thread.is_runtime);
        threads.flat_map(|thread| &thread.stacks)
    }

    /// Returns the threads that drive tasks and began requests, or all that drive tasks if none is known to have begun any.
    pub(crate) fn run_requests(&self) -> Vec<&CpuThread> {
        let mut threads: Vec<&CpuThread> = Vec::new();
        for thread in &self.threads {
            if thread.is_runtime {
                threads.push(thread);
            }
        }
        if threads.iter().any(|thread| thread.began_requests) {
            threads.retain(|thread| thread.began_requests);
        }
        threads
    }

    /// Returns the stacks of all threads.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        self.threads.iter().flat_map(|thread| &thread.stacks)
    }
}
