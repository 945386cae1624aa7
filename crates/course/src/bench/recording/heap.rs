//! Heap profiles, which need a build of their own.

use std::path::Path;

use crate::measurement::claim::{PROBLEM, SOLUTION};
use statistics::profile::ProfileKind;

use crate::bench::profiling::ProfileData;
use crate::bench::rounds::{Bench, RunError};

/// Takes heap profiles of problem and solution, from a server that counts allocations; none for a chapter
/// that asks for none.
pub(super) fn profiles(bench: &Bench<'_>, program: &Path) -> Result<Vec<ProfileData>, RunError> {
    let Some((seconds, _)) = bench.chapter.heap_profiles() else {
        return Ok(Vec::new());
    };
    let bench = Bench {
        program,
        ..bench.clone()
    };
    let mut profiles = Vec::new();
    for variant in [PROBLEM, SOLUTION] {
        profiles.push(bench.profile(variant, ProfileKind::Heap, seconds)?);
    }
    Ok(profiles)
}
