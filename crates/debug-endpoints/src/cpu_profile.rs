//! A finished CPU profile, and the formats in which it is given out.

use inferno::flamegraph::{Options, from_lines};

use crate::error::EndpointError;

/// One finished CPU profile, symbols resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuProfile {
    /// `(stack, samples)`: frames from the outermost inwards, joined by `;`.
    pub(crate) stacks: Vec<(String, u64)>,
    /// Gzipped pprof protobuf.
    pub(crate) pprof: Vec<u8>,
    /// Samples that idle CPUs would have given in the same time.
    pub(crate) idle: u64,
}

impl CpuProfile {
    /// Samples taken while a CPU ran this process.
    pub(crate) fn samples(&self) -> u64 {
        self.stacks.iter().map(|(_, samples)| samples).sum()
    }

    /// Folded stacks, a line each; `idle` adds a line for the time that CPUs were idle.
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

    /// An SVG that zooms and searches; an empty profile gives a picture that says so.
    pub(crate) fn flamegraph(&self, idle: bool) -> Result<String, EndpointError> {
        let mut options = Options::default();
        "CPU: where CPU time was spent".clone_into(&mut options.title);
        "samples".clone_into(&mut options.count_name);
        options.deterministic = true;
        let mut folded = self.folded(idle);
        if folded.is_empty() {
            "[no samples: nothing ran] 1".clone_into(&mut folded);
        }
        let mut svg = Vec::new();
        from_lines(&mut options, folded.lines(), &mut svg).map_err(EndpointError::failed)?;
        Ok(String::from_utf8_lossy(&svg).into_owned())
    }
}
