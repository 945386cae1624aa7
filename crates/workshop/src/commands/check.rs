//! `cargo workshop check N`: is the exercise cured?

use analysis::grade::{Grade, GradeKind, grade};
use bench::placement::Placement;
use bench::rounds::Bench;
use bench::trial;
use measurement::attempt::Attempt;
use serde::Serialize;

use crate::chapters::Workshop;
use crate::cli::Format;
use crate::compile::{self, CompileError};
use crate::exit::{CliError, Exit};
use crate::terminal::Terminal;
use crate::{ctrl_c, json, progress_file};

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    chapter: u32,
    #[serde(flatten)]
    grade: &'a Grade,
    attempt: &'a Attempt,
}

/// Compiles, runs and grades the exercise.
pub(crate) fn run(number: u32, format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let file = chapter.file()?;
    let interrupt = ctrl_c::watch();
    let attempt = match compile::programs(&workshop, &chapter, &file.mechanism.features, &interrupt)
    {
        Ok(programs) => {
            let terminal = Terminal::new();
            let bench = Bench {
                program: &programs.served,
                counted: programs.counted.as_deref(),
                arguments: &[],
                chapter: &file,
                placement: &Placement::of_chapter(&file),
                interrupt: &interrupt,
                observer: &|event| terminal.show(event),
            };
            trial::run(&bench, unforeseen())
                .map_err(|error| CliError::of_run(&error, &interrupt))?
        }
        Err(CompileError::Refused(compiler)) => Attempt::DoesNotCompile { compiler },
        Err(CompileError::Cargo(error)) => return Err(error),
    };
    let grade = grade(&file, &attempt);
    progress_file::remember_check(&workshop, &chapter, &grade);
    match format {
        Format::Json => json::print(&Report {
            chapter: number,
            grade: &grade,
            attempt: &attempt,
        })?,
        Format::Human => print(number, &grade),
    }
    Ok(match grade.kind {
        GradeKind::Passed => Exit::Good,
        GradeKind::Failed => Exit::Bad,
        GradeKind::Invalid => Exit::Invalid,
    })
}

fn print(number: u32, grade: &Grade) {
    if let Some(detail) = &grade.detail {
        println!("{}\n", detail.trim_end());
    }
    match grade.kind {
        GradeKind::Passed => {
            println!("chapter {number}: PASSED. {}", grade.reason);
            println!("Now prove it: cargo workshop prove {number}");
        }
        GradeKind::Failed => {
            println!("chapter {number}: FAILED. {}", grade.reason);
            println!("The next hint: cargo workshop hint {number}");
        }
        GradeKind::Invalid => {
            println!("chapter {number}: INVALID RUN. {}", grade.reason);
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
