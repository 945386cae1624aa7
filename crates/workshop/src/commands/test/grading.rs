//! Grades that a busy machine does not change.

use std::panic::resume_unwind;

use serde::Deserialize;

use super::busy::BusyProcessor;
use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise;

/// Grades in a row that must all be the same, where this check is asked for by name, and in any
/// case of the first chapter, whose grader all others share.
const GRADES: u32 = 20;
/// Graders of the first chapter at once, which share those.
const GRADERS: u32 = 4;
/// Grades of another chapter's exercise, and of its solution, among all checks.
const ONCE: u32 = 1;

pub(super) const GRADING: Check = Check {
    name: "grading",
    about: "with a core kept busy shipped exercises fail and solutions pass, 20 times each if asked by name",
    needs: &[Need::Git],
    stands_alone: true,
    run,
};

/// As much of `check --format json` as matters here.
#[derive(Debug, Deserialize)]
pub(super) struct Grade {
    pub(super) kind: String,
    pub(super) reason: String,
}

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let scratch = Scratch::clone(context, "grading", &["--depth", "1"])?;
    for chapter in &context.chapters {
        // Whatever a reader has committed, the shipped exercise is what must fail.
        context.run(&mut scratch.own(&["reset", &chapter.number.to_string()]))?;
        grades(context, &scratch, chapter, ("failed", 1))?;
        let solution = exercise::read(&chapter.source("solution"))?;
        put(&solution, context, &scratch, chapter)?;
        grades(context, &scratch, chapter, ("passed", 0))?;
    }
    Ok(())
}

/// Grades the exercise as it is now; `expected` is the grade, and the exit code that goes with it.
fn grades(
    context: &Context<'_>,
    scratch: &Scratch<'_>,
    chapter: &Chapter,
    expected: (&str, i32),
) -> Result<(), Failure> {
    // Compiling is no part of what the busy processor is there for.
    context.run(&mut scratch.cargo(&["build", "--package", &chapter.package()]))?;
    let _busy = BusyProcessor::start();
    let some = |times: u32| {
        (1..=times).try_for_each(|time| {
            grade(context, scratch, chapter, expected)
                .map_err(|failure| failure.of(&format!("check {time}")))
        })
    };
    match (chapter.number, context.by_name) {
        // Its load waits for the database: graders have time enough side by side, and are in each
        // other's way as a learner's other programs would be.
        (1, _) => std::thread::scope(|scope| {
            let graders: Vec<_> = (0..GRADERS)
                .map(|_| scope.spawn(|| some(GRADES / GRADERS)))
                .collect();
            graders
                .into_iter()
                .try_for_each(|grader| grader.join().unwrap_or_else(|panic| resume_unwind(panic)))
        }),
        (_, true) => some(GRADES),
        (_, false) => some(ONCE),
    }
}

fn grade(
    context: &Context<'_>,
    scratch: &Scratch<'_>,
    chapter: &Chapter,
    (kind, code): (&str, i32),
) -> Result<(), Failure> {
    let (ended, grade) = check(context, scratch, chapter)?;
    if grade.kind == kind && ended == Some(code) {
        return Ok(());
    }
    failed(format!(
        "chapter {} should have {kind}, but {} with code {ended:?}: {}",
        chapter.number, grade.kind, grade.reason
    ))
}

/// What `check` says of the chapter's exercise in the clone, and its exit code.
pub(super) fn check(
    context: &Context<'_>,
    scratch: &Scratch<'_>,
    chapter: &Chapter,
) -> Result<(Option<i32>, Grade), Failure> {
    let number = chapter.number.to_string();
    let command = &mut scratch.own(&["check", &number, "--format", "json"]);
    let (code, said) = context.output(command)?;
    match serde_json::from_str(&said) {
        Ok(grade) => Ok((code, grade)),
        Err(error) => failed(format!("check printed something else: {error}")),
    }
}

/// Puts `code` in the place of the chapter's exercise in the clone.
pub(super) fn put(
    code: &str,
    context: &Context<'_>,
    scratch: &Scratch<'_>,
    chapter: &Chapter,
) -> Result<(), Failure> {
    let file = context.workshop.shown(&chapter.source("exercise"));
    std::fs::write(scratch.path(&file), code)
        .or_else(|error| failed(format!("the exercise cannot be written: {error}")))
}
