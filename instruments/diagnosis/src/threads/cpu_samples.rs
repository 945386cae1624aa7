//! Samples of the CPU time of threads, with names.

use super::profile::Stack;

/// Samples of the CPU time that the threads of a process used.
#[derive(Debug, Default)]
pub struct CpuSamples {
    /// CPU time that a sample stands for, in seconds.
    pub period_s: f64,
    /// Threads with at least one sample.
    pub threads: Vec<CpuThread>,
}

/// Samples of one thread's CPU time.
#[derive(Debug, Default)]
pub struct CpuThread {
    /// True if it drives tasks of a runtime.
    pub is_runtime: bool,
    /// True if a request that await profiles see began on it.
    pub began_requests: bool,
    /// Its stacks, all of them running.
    pub stacks: Vec<Stack>,
}

impl CpuSamples {
    /// Returns the stacks of threads that drive tasks.
    pub(crate) fn of_tasks(&self) -> impl Iterator<Item = &Stack> {
        let threads = self.threads.iter().filter(|thread| thread.is_runtime);
        threads.flat_map(|thread| &thread.stacks)
    }

    /// Returns the stacks of all threads.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        self.threads.iter().flat_map(|thread| &thread.stacks)
    }
}
