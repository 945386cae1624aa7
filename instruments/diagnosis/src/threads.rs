//! Stacks of a process's threads, running or not: what the threads do and where they are blocked.

mod cpu_samples;
mod profile;
pub mod roles;
pub(crate) mod seen;
#[cfg(test)]
pub(crate) mod testing;

#[cfg(all(
    feature = "threads",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux;

pub use cpu_samples::{CpuMoment, CpuSamples, CpuThread};
#[cfg(all(
    feature = "threads",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use linux::{
    Call, NamedFrame, Names, Piece, ProgramFile, Samples, Standstill, StillThread, Stopped,
    Stopper, Unwinder, copy_memory, open_plain, sample, why_refused,
};
pub use profile::{Frame, Hold, Stack, State, Thread, ThreadProfile};
pub use seen::{Places, Spot};
