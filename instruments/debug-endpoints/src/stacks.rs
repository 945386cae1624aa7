//! Stacks of this process: of what computes, of all threads, and of what allocates. Linux on x86-64 or aarch64.

mod cpu_apart;
mod cpu_names;
pub(crate) mod cpu_sampler;
mod cpu_samples;
mod cpu_signal;
mod cpu_timer;
mod kept;
pub(crate) mod kept_lines;
pub(crate) mod threads;

pub use kept::WatchedAllocator;
