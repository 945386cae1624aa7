//! `cargo workshop check N`: is the exercise fixed?

use std::time::Instant;

use children::Interrupt;
use course::analysis::grade::{Contract, Grade, GradeKind};
use course::bench::rounds::Bench;
use course::bench::trial;
use course::measurement::claim::EXERCISE;
use course::report::claims::ClaimSummary;
use engine::event::Event;
use serde::Serialize;

use crate::chapters::Workshop;
use crate::cli::Format;
use crate::compile::{self, Build, CompileError};
use crate::exercise::Exercise;
use crate::exit;
use crate::progress_file;
use crate::progress_file::Check;
use terminal::exit::{CliError, Exit};
use terminal::progress::Terminal;
use terminal::{ctrl_c, json};

/// Object that `--format json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    chapter: u32,
    variant: &'a str,
    verdict: GradeKind,
    reason: &'a str,
    /// Words of the compiler or the server that belong to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    contract: &'a Contract,
    claims: Vec<ClaimSummary>,
    /// SHA-256 of the exercise that was compiled.
    exercise: &'a str,
    /// Other files that differ from the last commit, by their paths: of the chapter, and the two of
    /// cargo at the root.
    also_changed: &'a [String],
    /// After compiling.
    seconds: f64,
}

/// A graded variant.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) grade: Grade,
    /// SHA-256 of the exercise that was compiled.
    exercise: String,
    /// See [`Report::also_changed`].
    also_changed: Vec<String>,
    seconds: f64,
}

/// Compiles, runs and grades a variant: the exercise, unless another is named.
pub(crate) fn run(number: u32, variant: &str, format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let interrupt = ctrl_c::watch();
    let checked = check(&workshop, number, variant, &interrupt)?;
    note_others(&checked);
    let grade = &checked.grade;
    match format {
        Format::Json => json::print_as(
            "check",
            &Report {
                chapter: number,
                variant,
                verdict: grade.kind,
                reason: &grade.reason,
                detail: grade.detail.as_deref(),
                contract: &grade.contract,
                claims: grade.findings.iter().map(ClaimSummary::from).collect(),
                exercise: &checked.exercise,
                also_changed: &checked.also_changed,
                seconds: checked.seconds,
            },
        )?,
        Format::Human => print(number, variant, grade),
    }
    Ok(match grade.kind {
        GradeKind::Passed => Exit::Good,
        GradeKind::Failed => Exit::Bad,
        GradeKind::Invalid => Exit::Invalid,
    })
}

/// Compiles and grades a variant, and remembers the grade of the exercise.
pub(super) fn check(
    workshop: &Workshop,
    number: u32,
    variant: &str,
    interrupt: &Interrupt,
) -> Result<Checked, CliError> {
    let chapter = workshop.chapter(number)?;
    let also_changed = workshop.also_changed(&chapter);
    let file = chapter.file()?;
    let exercise = Exercise::digest_now(&chapter);
    compile::announce("the contract tests and some rounds of load, about ten seconds");
    let build = Build {
        workshop,
        chapter: &chapter,
        interrupt,
    };
    let programs = build.graded(&file.claims.root_cause().features);
    let began = Instant::now();
    let mut grade = match programs {
        Ok(programs) => {
            let terminal = Terminal::new();
            let observer = |event: Event<'_>| terminal.show(event);
            let bench = Bench::new(&programs.server, &file, interrupt, &observer);
            trial::run(&bench, &programs.contract, variant, unforeseen())
                .map_err(|error| exit::of_run(&error, interrupt))?
        }
        Err(CompileError::Refused(compiler)) => Grade::uncompiled(compiler),
        Err(CompileError::Cargo(error)) => return Err(error),
    };
    if variant == EXERCISE {
        if grade.kind == GradeKind::Failed && !Exercise::read(&chapter)?.is_edited() {
            grade.reason = format!("exercise.rs is as it was shipped: {}", grade.reason);
        }
        if Exercise::digest_now(&chapter) == exercise {
            let check = Check {
                kind: grade.kind,
                exercise: exercise.clone(),
            };
            progress_file::remember(workshop, number, |done| done.check = Some(check));
        } else {
            eprintln!(
                "note: exercise.rs was saved during the check, which may have compiled either version, so the grade is \
                 not remembered: check again"
            );
        }
    }
    Ok(Checked {
        grade,
        exercise,
        also_changed,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Notes which other files the reader has changed.
pub(super) fn note_others(checked: &Checked) {
    if !checked.also_changed.is_empty() {
        eprintln!(
            "note: you also changed {}; only exercise.rs is meant to change",
            checked.also_changed.join(", ")
        );
    }
}

pub(super) fn print(number: u32, variant: &str, grade: &Grade) {
    let what = match variant {
        EXERCISE => format!("chapter {number}"),
        other => format!("chapter {number}, {other}"),
    };
    if let Some(detail) = &grade.detail {
        println!("{}\n", detail.trim_end());
    }
    match grade.kind {
        GradeKind::Passed => {
            println!("{what}: PASSED. {}", grade.reason);
            println!("Now prove it: cargo workshop prove {number} --variant {variant}");
        }
        GradeKind::Failed => {
            println!("{what}: FAILED. {}", grade.reason);
            if let Some(test) = &grade.failed_test {
                let test = test.replace(' ', "_");
                println!(
                    "The test alone: VARIANT={variant} cargo test -p chapter{number} --test contract {test}"
                );
            } else if variant == EXERCISE {
                println!("The next hint: cargo workshop hint {number}");
            }
        }
        GradeKind::Invalid => {
            println!("{what}: INVALID RUN. {}", grade.reason);
            println!("This says nothing about your edit: try again, or cargo workshop doctor");
        }
    }
}

/// A seed that the exercise cannot know: the data, and the answer, vary with it.
fn unforeseen() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    1 + u64::from(now.subsec_nanos()) % 1_000_000
}
