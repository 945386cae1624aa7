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

    pub(super) async fn record(_: Duration, _: u16) -> Result<CpuProfile, Refusal> {
        Err(Refusal::NotHere(
            "CPU profiles in process need a Unix system; on Windows use samply or the \
             Windows Performance Recorder, as the book describes",
        ))
    }
}

#[cfg(unix)]
mod sampler {
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use pprof::protos::Message;
    use pprof::{Frames, ProfilerGuard, ProfilerGuardBuilder, Report};

    use super::{CpuProfile, Duration, Refusal};

    pub(super) async fn record(duration: Duration, frequency: u16) -> Result<CpuProfile, Refusal> {
        let guard = ProfilerGuardBuilder::default()
            .frequency(i32::from(frequency))
            .blocklist(&["libgcc"])
            .build()
            .map_err(failed)?;
        tokio::time::sleep(duration).await;
        finish(&guard, duration, frequency)
    }

    fn finish(
        guard: &ProfilerGuard<'_>,
        duration: Duration,
        frequency: u16,
    ) -> Result<CpuProfile, Refusal> {
        let report = guard
            .report()
            .frames_post_processor(name_sources)
            .build()
            .map_err(failed)?;
        let stacks = folded(&report);
        let busy: u64 = stacks.iter().map(|(_, samples)| samples).sum();
        let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let possible = duration.as_secs_f64() * f64::from(frequency) * processors;
        Ok(CpuProfile {
            pprof: gzipped(&report.pprof().map_err(failed)?.encode_to_vec()).map_err(failed)?,
            // Truncation towards zero is right: less than a whole sample is none.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            idle: (possible as u64).saturating_sub(busy),
            stacks,
        })
    }

    fn folded(report: &Report) -> Vec<(String, u64)> {
        let mut stacks = std::collections::BTreeMap::<String, u64>::new();
        for (frames, samples) in &report.data {
            let names: Vec<String> = frames
                .frames
                .iter()
                .rev()
                .flat_map(|frame| frame.iter().rev())
                .map(|symbol| symbol.name().replace(';', ","))
                .collect();
            let stack = format!("{};{}", frames.thread_name_or_id(), names.join(";"));
            *stacks.entry(stack).or_default() += u64::try_from(*samples).unwrap_or_default();
        }
        stacks.into_iter().collect()
    }

    /// Source files as a reader on another machine can find them: relative to the workspace, or
    /// to the registry or toolchain that they come from.
    fn name_sources(frames: &mut Frames) {
        for symbol in frames.frames.iter_mut().flatten() {
            if let Some(file) = &symbol.filename {
                symbol.filename = Some(portable(file));
            }
        }
    }

    fn portable(file: &Path) -> PathBuf {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
        if let Some(inside) = lab
            .ancestors()
            .nth(2)
            .and_then(|root| file.strip_prefix(root).ok())
        {
            return inside.to_owned();
        }
        let parts: Vec<_> = file.components().collect();
        let after = |marker: &str, skip: usize| {
            let at = parts.iter().position(|part| part.as_os_str() == marker)?;
            parts.get(at + 1 + skip..).map(|rest| rest.iter().collect())
        };
        // …/registry/src/<index>/<crate>/… and /rustc/<commit>/library/…
        after("registry", 2)
            .or_else(|| after("rustc", 1))
            .unwrap_or_else(|| file.file_name().map(PathBuf::from).unwrap_or_default())
    }

    fn gzipped(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(bytes)?;
        writer.finish()
    }

    fn failed(error: impl std::fmt::Display) -> Refusal {
        Refusal::Failed(error.to_string())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn no_source_names_the_machine_that_it_was_built_on() {
            let cases = [
                (
                    concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"),
                    "crates/lab/src/lib.rs",
                ),
                (
                    "/home/me/.cargo/registry/src/index-1/tokio-1.0.0/src/lib.rs",
                    "tokio-1.0.0/src/lib.rs",
                ),
                (
                    "/rustc/0123abc/library/core/src/ptr.rs",
                    "library/core/src/ptr.rs",
                ),
                ("/somewhere/else/x.c", "x.c"),
            ];
            for (file, expected) in cases {
                assert_eq!(portable(Path::new(file)), Path::new(expected));
            }
        }
    }
}
