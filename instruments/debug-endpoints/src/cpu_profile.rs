//! A finished CPU profile, and its output formats.

use std::fmt::Write;

#[cfg(feature = "flamegraph")]
use diagnosis::threads::roles::is_of_profiler;

use crate::error::EndpointError;
#[cfg(feature = "flamegraph")]
use crate::sampled_picture::{self, OWN};

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
        self.not_sampled(idle) + &lines.concat()
    }

    /// Returns the lines of time without samples.
    fn not_sampled(&self, idle: bool) -> String {
        let mut lines = String::new();
        for (frame, number) in [(UNSEEN, self.unseen), (IDLE, self.idle)] {
            if idle && number > 0 {
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{frame} {number}");
            }
        }
        lines
    }

    /// Returns an SVG that can be zoomed and searched. An empty profile gives a picture that says so.
    #[cfg(feature = "flamegraph")]
    pub(crate) fn flamegraph(&self, idle: bool) -> Result<String, EndpointError> {
        let mut folded = String::new();
        let mut own = 0;
        for (stack, samples) in &self.stacks {
            // The first frame is the thread's name.
            if is_of_profiler(stack.split(';').skip(1)) {
                own += samples;
                folded.extend([OWN, ";"]);
            }
            // Writing to a string cannot fail.
            let _ = writeln!(folded, "{stack} {samples}");
        }
        folded += &self.not_sampled(idle);
        let drawing = await_profile::drawing::Drawing {
            title: "CPU: where CPU time was spent".to_owned(),
            captions: self.note.iter().cloned().collect(),
            ..Default::default()
        };
        sampled_picture::draw(drawing, &folded, self.samples(), own)
    }

    #[cfg(not(feature = "flamegraph"))]
    #[allow(clippy::unused_self)] // one signature for both
    pub(crate) fn flamegraph(&self, _: bool) -> Result<String, EndpointError> {
        Err(EndpointError::Unsupported("this build draws no pictures"))
    }
}

#[cfg(all(test, feature = "flamegraph"))]
mod tests {
    use super::*;

    fn drawn(service: u64) -> String {
        let profile = CpuProfile {
            stacks: vec![
                ("worker;shop::rank".to_owned(), service),
                (
                    "sockets;std::thread::run;debug_endpoints::sockets::watch;read".to_owned(),
                    28,
                ),
            ],
            ..CpuProfile::default()
        };
        profile.flamegraph(false).expect("drawn")
    }

    #[test]
    fn a_picture_of_few_samples_has_their_numbers_and_no_percentage() {
        let few = drawn(7);
        for part in [
            "35 samples.",
            "own work is in the box [debug endpoints]: 28 samples.",
            "too few for percentages",
            "shop::rank (7 of 35 samples)",
            "[debug endpoints] (28 of 35 samples)",
        ] {
            assert!(few.contains(part), "no {part} in {few}");
        }
        let titles: Vec<&str> = few.split("<title>").skip(1).collect();
        let boxes = titles.iter().map(|title| title.split("</title>").next());
        assert!(!boxes.flatten().any(|title| title.contains('%')), "{few}");
    }

    #[test]
    fn a_picture_of_many_samples_has_percentages() {
        let many = drawn(972);
        assert!(many.contains("1000 samples."), "{many}");
        assert!(many.contains("97.20%"), "{many}");
        assert!(!many.contains("too few"), "{many}");
    }
}
