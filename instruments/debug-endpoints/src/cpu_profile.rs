//! A finished CPU profile, and its output formats.

use crate::error::EndpointError;

/// Frame for the time in which CPUs had nothing to do; the drawing makes it grey.
const IDLE: &str = "[idle]";

/// Frame for the CPU time of which no sample was taken.
const UNSEEN: &str = "[not seen]";

/// A finished CPU profile, with names.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuProfile {
    /// `(stack, samples)`: frames from the outermost inwards, joined by `;`.
    pub(crate) stacks: Vec<(String, u64)>,
    /// Gzipped pprof protobuf.
    pub(crate) pprof: Vec<u8>,
    /// Sentences that a reader has to know, if any.
    pub(crate) note: Option<String>,
    /// Samples that idle CPUs would have given in the same time.
    pub(crate) idle: u64,
    /// Samples that are missing for the CPU time that threads used; 0 if these are few.
    pub(crate) unseen: u64,
    /// A sentence on them, which is also in the note.
    pub(crate) why_unseen: Option<String>,
}

impl CpuProfile {
    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.stacks.iter().map(|(_, samples)| samples).sum()
    }

    /// Returns folded stacks, a line each. `idle` adds a line for the time in which CPUs were idle, and one for CPU time of
    /// which no sample was taken.
    pub(crate) fn folded(&self, idle: bool) -> String {
        let mut lines = Vec::new();
        for (stack, samples) in &self.stacks {
            lines.push(format!("{stack} {samples}\n"));
        }
        lines.sort_unstable();
        if idle && self.idle > 0 {
            lines.insert(0, format!("{IDLE} {}\n", self.idle));
        }
        if idle && self.unseen > 0 {
            lines.insert(0, format!("{UNSEEN} {}\n", self.unseen));
        }
        lines.concat()
    }

    /// Returns an SVG that can be zoomed and searched. An empty profile gives a picture that says so.
    #[cfg(feature = "flamegraph")]
    pub(crate) fn flamegraph(&self, idle: bool) -> Result<String, EndpointError> {
        let drawing = await_profile::drawing::Drawing {
            title: "CPU: where CPU time was spent".to_owned(),
            captions: self.note.iter().cloned().collect(),
            unit: "samples".to_owned(),
            ..Default::default()
        };
        drawing
            .draw(&self.folded(idle))
            .map_err(EndpointError::failed)
    }

    #[cfg(not(feature = "flamegraph"))]
    #[allow(clippy::unused_self)] // one signature for both
    pub(crate) fn flamegraph(&self, _: bool) -> Result<String, EndpointError> {
        Err(EndpointError::Unsupported("this build draws no pictures"))
    }
}
