//! Grades: of the shipped exercise, of the solution in its place, of right fixes and of edits that fix nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use serde::Deserialize;

use super::answers;
use super::context::Context;
use super::judge::{self, Answer};
use super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise::{self, Exercise};
use crate::exit::{CliError, Exit};

/// Grades in a row that must all be right, beside a busy core.
const AT_LENGTH: u32 = 20;
/// Grades of each edit beside a busy core.
const OF_EACH_EDIT: usize = 5;
/// How often an invalid run is made at most.
const ATTEMPTS: u32 = 3;

pub(super) fn once(context: &Context<'_>) -> Result<(), CliError> {
    grades(context, 1)
}

pub(super) fn many(context: &Context<'_>) -> Result<(), CliError> {
    beside_a_busy_core(|| grades(context, AT_LENGTH))
}

fn grades(context: &Context<'_>, times: u32) -> Result<(), CliError> {
    for chapter in &context.chapters {
        // Whatever a reader has made of it, the shipped one is what must fail: it has the problem's code,
        // as a test sees to.
        let edited = Exercise::read(chapter)?.is_edited();
        let shipped = if edited { PROBLEM } else { EXERCISE };
        let both = [
            (shipped, judge::of_shipped as fn(&_) -> _),
            (SOLUTION, judge::of_solution),
        ];
        for (variant, judge) in both {
            let check = format!("check {} --variant {variant}", chapter.number);
            for _ in 0..times {
                let answer = grade(context, &check, || context.own(&check))?;
                let what = format!("chapter {}'s {variant}", chapter.number);
                context.settle(&what, &answer, judge(&answer))?;
            }
        }
    }
    Ok(())
}

/// What a check says, the third time if need be.
fn grade(
    context: &Context<'_>,
    check: &str,
    command: impl Fn() -> Command,
) -> Result<Answer, CliError> {
    let mut attempts = 0;
    loop {
        let (code, said) = context.json(&mut command())?;
        let answer = answers::judged(&said)?;
        attempts += 1;
        if code != Some(answer.verdict.code().into()) {
            return Err(CliError::bad(format!(
                "`{check}` is {} with code {code:?}",
                answer.word
            )));
        }
        if answer.verdict != Exit::Invalid || attempts == ATTEMPTS {
            return Ok(answer);
        }
    }
}

fn beside_a_busy_core<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        worked
    })
}

pub(super) fn fixes(context: &Context<'_>) -> Result<(), CliError> {
    edits(context, "fixes", None)
}

pub(super) fn cheats(context: &Context<'_>) -> Result<(), CliError> {
    edits(context, "cheats", None)
}

/// Goes on where an earlier run of the same code ended.
pub(super) fn many_edits(context: &Context<'_>) -> Result<(), CliError> {
    let done = context.folder.join("grades.tsv");
    beside_a_busy_core(|| {
        edits(context, "fixes", Some(&done))?;
        edits(context, "cheats", Some(&done))
    })
}

/// Grades all edits of this kind, in a copy of the workshop: once, or as often as it takes until `done`
/// has enough of each.
fn edits(context: &Context<'_>, kind: &str, done: Option<&Path>) -> Result<(), CliError> {
    let scratch = Scratch::copy(context)?;
    let mut failures = Vec::new();
    for chapter in &context.chapters {
        for (edit, code) in edited(chapter, kind)? {
            scratch.put(chapter, &code)?;
            let check = format!("check {}", chapter.number);
            let what = format!("chapter {}, {kind}: `{}`", chapter.number, edit.name);
            let row = format!("{}\t{what}\t", scratch.hash_of(chapter)?);
            let left = match done {
                Some(done) => OF_EACH_EDIT.saturating_sub(rows(done, &row)),
                None => 1,
            };
            for _ in 0..left {
                let answer = grade(context, &check, || scratch.own(&check))?;
                let judged = match &edit.reason {
                    Some(reason) => judge::of_cheat(&answer, reason),
                    None => judge::of_solution(&answer),
                };
                match context.settle(&what, &answer, judged) {
                    Err(failure) => failures.push(failure.to_string()),
                    // A failure is no row: it is seen again until it is mended.
                    Ok(()) => done.map_or(Ok(()), |done| append(done, &row, &answer))?,
                }
            }
        }
    }
    match failures.as_slice() {
        [] => Ok(()),
        failures => Err(CliError::bad(failures.join("\n"))),
    }
}

/// How many grades with this beginning there are.
fn rows(done: &Path, beginning: &str) -> usize {
    let text = std::fs::read_to_string(done).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with(beginning))
        .count()
}

fn append(done: &Path, row: &str, answer: &Answer) -> Result<(), CliError> {
    let file = File::options().append(true).create(true).open(done);
    file.and_then(|mut file| writeln!(file, "{row}{}\t{}", answer.word, answer.reason))
        .map_err(CliError::because("a grade cannot be noted"))
}

/// An edit of the problem, and what the grade must say of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    name: String,
    edits: Vec<Replacement>,
    /// A part of the reason for which it fails, in lower case; a fix has none.
    reason: Option<String>,
}

/// What is replaced by what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    old: String,
    new: String,
}

/// The chapter's `cheats` or `fixes`, each with the problem's code so edited.
fn edited(chapter: &Chapter, kind: &str) -> Result<Vec<(Edit, String)>, CliError> {
    let problem = exercise::read(&chapter.source("problem"))?;
    let file = format!("{kind}.toml");
    let text = exercise::read(&chapter.folder.join(&file))?;
    let mut edits: BTreeMap<String, Vec<Edit>> = toml::from_str(&text)
        .map_err(|error| CliError::bad(format!("{file} is not understood: {error}")))?;
    let edit = |edit: Edit| {
        let mut code = problem.clone();
        for Replacement { old, new } in &edit.edits {
            if !code.contains(old.as_str()) {
                return Err(CliError::bad(format!(
                    "{file}, `{}`: problem.rs has no `{old}`",
                    edit.name
                )));
            }
            code = code.replace(old, new);
        }
        Ok((edit, code))
    };
    let edits = edits.remove(kind).unwrap_or_default();
    edits.into_iter().map(edit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::Workshop;

    #[test]
    fn every_edit_is_one_of_its_problem_as_it_is() {
        let chapters = Workshop::find().unwrap().chapters().unwrap();
        for chapter in chapters {
            for (kind, at_least) in [("fixes", 6), ("cheats", 8)] {
                let edits = edited(&chapter, kind).unwrap();
                assert!(edits.len() >= at_least, "{kind} of {chapter:?}");
                let has_reason = |(edit, _): &(Edit, _)| edit.reason.is_some();
                assert!(
                    edits
                        .iter()
                        .all(|edit| has_reason(edit) == (kind == "cheats"))
                );
            }
        }
    }
}
