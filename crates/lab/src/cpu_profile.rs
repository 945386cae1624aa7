//! CPU profiles taken from inside the process, with pprof.
//!
//! Chosen knowingly, because each choice hides something else:
//!
//! - **Unwinder**: framehop. Frame pointers lose the leaf frame, and the default unwinder may
//!   deadlock in a signal handler.
//! - **Frequency**: 99 samples a second of processor time. The timer is the kernel's, so 250 is the
//!   most that a usual kernel gives; a prime-like number does not beat in step with timers.
//! - **Blocklist**: only the unwinding library, whose lock a handler must not take. Many examples
//!   also block `libc`, which would drop every sample inside a system call: in a web service, most.

use std::sync::Mutex;
use std::time::Duration;

use crate::admin::Refusal;
use crate::flamegraph;

/// One finished CPU profile, symbols resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuProfile {
    /// `(stack, samples)`: frames from the outermost inwards, joined by `;`.
    stacks: Vec<(String, u64)>,
    /// Gzipped pprof protobuf.
    pprof: Vec<u8>,
    /// Samples that idle processors would have given in the same time.
    idle: u64,
}

/// Takes one profile at a time and remembers the last.
#[derive(Debug, Default)]
pub(crate) struct CpuProfiler {
    last: Mutex<Option<CpuProfile>>,
    running: tokio::sync::Mutex<()>,
}

impl CpuProfiler {
    /// A profiler that is ready to sample a loaded server. Call it before anything else runs: see
    /// [`sampler::prime`].
    pub(crate) fn ready() -> Self {
        sampler::prime();
        Self::default()
    }

    /// Samples a second of processor time.
    pub(crate) const DEFAULT_FREQUENCY: u16 = 99;

    /// Samples the whole process for `duration`.
    pub(crate) async fn record(
        &self,
        duration: Duration,
        frequency: u16,
    ) -> Result<CpuProfile, Refusal> {
        if !(1..=1000).contains(&frequency) {
            return Err(Refusal::BadRequest(format!(
                "frequency must be from 1 to 1000 samples a second, not {frequency}"
            )));
        }
        let _one_at_a_time = self.running.try_lock().map_err(|_| Refusal::Busy)?;
        let profile = sampler::record(duration, frequency).await?;
        *self.slot() = Some(profile.clone());
        Ok(profile)
    }

    /// The last profile taken, if any.
    pub(crate) fn last(&self) -> Option<CpuProfile> {
        self.slot().clone()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<CpuProfile>> {
        self.last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl CpuProfile {
    /// Samples taken while a processor ran this process.
    pub(crate) fn samples(&self) -> u64 {
        self.stacks.iter().map(|(_, samples)| samples).sum()
    }

    /// Folded stacks, a line each; `idle` adds a line for the time that processors stood still.
    pub(crate) fn folded(&self, idle: bool) -> String {
        let mut lines: Vec<String> = self
            .stacks
            .iter()
            .map(|(stack, samples)| format!("{stack} {samples}\n"))
            .collect();
        lines.sort_unstable();
        if idle && self.idle > 0 {
            lines.insert(0, format!("[idle] {}\n", self.idle));
        }
        lines.concat()
    }

    /// Gzipped pprof protobuf.
    pub(crate) fn pprof(&self) -> Vec<u8> {
        self.pprof.clone()
    }

    /// An SVG that zooms and searches.
    pub(crate) fn flamegraph(&self, idle: bool) -> Result<String, Refusal> {
        flamegraph::draw(&self.folded(idle)).map_err(|e| Refusal::Failed(e.to_string()))
    }
}

#[cfg(not(unix))]
mod sampler {
    use super::{CpuProfile, Duration, Refusal};

    pub(super) fn prime() {}

    pub(super) async fn record(_: Duration, _: u16) -> Result<CpuProfile, Refusal> {
        Err(Refusal::NotHere(
            "CPU profiles in process need a Unix system; on Windows use samply or the \
             Windows Performance Recorder, as the book describes",
        ))
    }
}

#[cfg(unix)]
mod sampler;
