//! What noise cannot touch, and what takes a build or a tool of its own: allocations and
//! instructions.

use std::process::Command;
use std::time::Duration;

use bench::child::{self, Starting};
use bench::profiling::ProfileData;
use bench::rounds::Bench;
use loadgen::interrupt::Interrupt;
use measurement::chapter_file::ChapterFile;
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::instructions::{Instructions, per_round};
use measurement::profile::ProfileKind;

use crate::chapters::{Chapter, Workshop};
use crate::compile;
use crate::exit::CliError;
use crate::terminal::Terminal;

/// How long one count may take; it takes seconds.
const TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// Bytes of valgrind's words that are kept.
const KEPT: usize = 1 << 16;

/// Heap profiles of problem and solution; none for a chapter that asks for none.
pub(super) fn heap_profiles(
    workshop: &Workshop,
    chapter: &Chapter,
    bench: &Bench<'_>,
) -> Result<Vec<ProfileData>, CliError> {
    let Some(seconds) = bench.chapter.rounds.heap_profile_s else {
        return Ok(Vec::new());
    };
    let features = ["heap".to_owned()];
    let programs = compile::programs(workshop, chapter, &features, bench.interrupt)?;
    let bench = Bench {
        program: programs.counted.as_deref().unwrap_or(&programs.served),
        ..bench.clone()
    };
    [PROBLEM, SOLUTION]
        .into_iter()
        .map(|variant| {
            bench
                .profile(variant, ProfileKind::Heap, seconds)
                .map_err(|error| CliError::of_run(&error, bench.interrupt))
        })
        .collect()
}

/// Instructions of the variants that the chapter names, by valgrind's callgrind.
pub(super) fn instructions(
    workshop: &Workshop,
    chapter: &Chapter,
    file: &ChapterFile,
    terminal: &Terminal,
    interrupt: &Interrupt,
) -> Result<Vec<Instructions>, CliError> {
    let Some(counting) = &file.instructions else {
        return Ok(Vec::new());
    };
    let Some(valgrind) = child::find("valgrind") else {
        return Err(CliError::bad(
            "valgrind is not installed, and this capture counts instructions with it: \
             https://valgrind.org, or `apt install valgrind`",
        ));
    };
    let example = compile::example(workshop, chapter, &counting.example, interrupt)?;
    let run = |variant: &str, rounds: u32| {
        let mut counting = Command::new(&valgrind);
        counting
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&example)
            .args([variant, &rounds.to_string()]);
        let said = Starting::of(&counting).output(interrupt, TIMEOUT, KEPT);
        let said = said.map_err(CliError::of_child("valgrind cannot be run"))?;
        let said = said.map(|said| String::from_utf8_lossy(&said.stderr).into_owned());
        said.ok_or_else(|| {
            let minutes = TIMEOUT.as_secs() / 60;
            CliError::bad(format!("valgrind ran for over {minutes} minutes"))
        })
    };
    counting
        .variants
        .iter()
        .map(|variant| {
            let shorter = run(variant, counting.rounds)?;
            let longer = run(variant, 2 * counting.rounds)?;
            let counted = per_round(&shorter, &longer, counting.rounds).ok_or_else(|| {
                CliError::bad(format!(
                    "callgrind counted nothing of `{} {variant}`; it said: {}",
                    counting.example,
                    shorter.lines().last().unwrap_or_default()
                ))
            })?;
            terminal.say(&format!(
                "        instructions of the {variant}: {counted:.1} a {}",
                counting.unit
            ));
            Ok(Instructions {
                variant: variant.clone(),
                per_round: counted,
            })
        })
        .collect()
}
