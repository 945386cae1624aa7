//! Grades: of the shipped exercise, of the solution in its place, and of edits that fix nothing.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use serde::Deserialize;

use super::answers;
use super::context::Context;
use super::judge::{self, Answer, Judged};
use super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise::{self, Exercise};
use crate::exit::{CliError, Exit};

/// Grades in a row that must all be right, beside a busy core.
const AT_LENGTH: u32 = 20;
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

pub(super) fn cheats(context: &Context<'_>) -> Result<(), CliError> {
    edits(context, "cheats", |answer, cheat| {
        judge::of_cheat(answer, cheat.reason.as_deref().unwrap_or_default())
    })
}

pub(super) fn fixes(context: &Context<'_>) -> Result<(), CliError> {
    edits(context, "fixes", |answer, _| judge::of_solution(answer))
}

/// Grades all edits of this kind, in a copy of the workshop.
fn edits(
    context: &Context<'_>,
    kind: &str,
    judge: impl Fn(&Answer, &Edit) -> Judged,
) -> Result<(), CliError> {
    let scratch = Scratch::copy(context)?;
    for chapter in &context.chapters {
        for (edit, code) in edited(chapter, kind)? {
            scratch.put(chapter, &code)?;
            let check = format!("check {}", chapter.number);
            let answer = grade(context, &check, || scratch.own(&check))?;
            let what = format!("chapter {}, {kind}: `{}`", chapter.number, edit.name);
            context.settle(&what, &answer, judge(&answer, &edit))?;
        }
    }
    Ok(())
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
