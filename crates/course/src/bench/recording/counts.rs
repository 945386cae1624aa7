//! Counts that noise cannot touch and that need a build or a tool of their own: allocations and instructions.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::measurement::claim::{PROBLEM, SOLUTION};
use crate::measurement::instructions::{Instructions, per_round};
use children::Starting;
use statistics::profile::ProfileKind;

use crate::bench::profiling::ProfileData;
use crate::bench::rounds::{Bench, RunError};
use engine::event::Event;

/// Longest time for one count, which usually takes seconds.
const TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// Bytes of valgrind's output that are kept.
const KEPT: usize = 1 << 16;

/// Takes heap profiles of problem and solution, from a server that counts allocations; none for a chapter
/// that asks for none.
pub(super) fn heap_profiles(
    bench: &Bench<'_>,
    program: &Path,
) -> Result<Vec<ProfileData>, RunError> {
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

/// Counts the instructions of the variants that the chapter names, with valgrind's callgrind.
pub(super) fn instructions(
    bench: &Bench<'_>,
    example: &Path,
) -> Result<Vec<Instructions>, RunError> {
    let Some(counting) = bench.chapter.instructions() else {
        return Ok(Vec::new());
    };
    let Some(valgrind) = children::find("valgrind") else {
        return Err(RunError::Outside(
            "valgrind is not installed, and this capture counts instructions with it: \
             https://valgrind.org, or `apt install valgrind`"
                .to_owned(),
        ));
    };
    let mut instructions = Vec::new();
    for variant in &counting.variants {
        let mut said = Vec::new();
        for rounds in [counting.rounds, 2 * counting.rounds] {
            let mut callgrind = Command::new(&valgrind);
            callgrind
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .arg(example)
                .args([variant, &rounds.to_string()]);
            said.push(stderr_of(&callgrind, bench)?);
        }
        let Some(counted) = per_round(&said[0], &said[1], counting.rounds) else {
            return Err(RunError::Outside(format!(
                "callgrind counted nothing of `{} {variant}`; it said: {}",
                counting.example,
                said[0].lines().last().unwrap_or_default()
            )));
        };
        (bench.observer)(Event::Said(&format!(
            "        instructions of the {variant}: {counted:.1} a {}",
            counting.unit
        )));
        instructions.push(Instructions {
            variant: variant.clone(),
            per_round: counted,
        });
    }
    Ok(instructions)
}

/// Runs valgrind, and returns what it wrote to stderr.
fn stderr_of(valgrind: &Command, bench: &Bench<'_>) -> Result<String, RunError> {
    let ended = Starting::of(valgrind)
        .output(bench.interrupt, TIMEOUT, KEPT)
        .map_err(RunError::of_child("valgrind cannot be run"))?;
    let Some(output) = ended else {
        let minutes = TIMEOUT.as_secs() / 60;
        return Err(RunError::Outside(format!(
            "valgrind ran for over {minutes} minutes"
        )));
    };
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}
