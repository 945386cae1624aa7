//! Counts that noise cannot touch and that need a build or a tool of their own: allocations and instructions.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::measurement::claim::{PROBLEM, SOLUTION};
use crate::measurement::instructions::{Instructions, per_round};
use engine::profile::ProfileKind;

use crate::bench::profiling::ProfileData;
use crate::bench::rounds::{Bench, RunError};
use engine::child::{self, Starting};
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
    let Some(valgrind) = child::find("valgrind") else {
        return Err(RunError::Outside(
            "valgrind is not installed, and this capture counts instructions with it: \
             https://valgrind.org, or `apt install valgrind`"
                .to_owned(),
        ));
    };
    let run = |variant: &str, rounds: u32| {
        let mut counting = Command::new(&valgrind);
        counting
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(example)
            .args([variant, &rounds.to_string()]);
        let said = Starting::of(&counting).output(bench.interrupt, TIMEOUT, KEPT);
        let said = said.map_err(RunError::of_child("valgrind cannot be run"))?;
        let said = said.map(|said| String::from_utf8_lossy(&said.stderr).into_owned());
        said.ok_or_else(|| {
            let minutes = TIMEOUT.as_secs() / 60;
            RunError::Outside(format!("valgrind ran for over {minutes} minutes"))
        })
    };
    counting
        .variants
        .iter()
        .map(|variant| {
            let shorter = run(variant, counting.rounds)?;
            let longer = run(variant, 2 * counting.rounds)?;
            let counted = per_round(&shorter, &longer, counting.rounds).ok_or_else(|| {
                RunError::Outside(format!(
                    "callgrind counted nothing of `{} {variant}`; it said: {}",
                    counting.example,
                    shorter.lines().last().unwrap_or_default()
                ))
            })?;
            (bench.observer)(Event::Said(&format!(
                "        instructions of the {variant}: {counted:.1} a {}",
                counting.unit
            )));
            Ok(Instructions {
                variant: variant.clone(),
                per_round: counted,
            })
        })
        .collect()
}
