//! Grades: of the shipped exercise, of the solution in its place, of right fixes and of edits that fix nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use measurement::claim::{EXERCISE, PROBLEM, SOLUTION};
use serde::Deserialize;

use super::answers;
use super::context::{Context, append, beside_a_busy_core};
use super::judge::{self, Answer};
use super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise::{self, Exercise};
use crate::exit::{CliError, Exit};
use crate::files;

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

pub(super) fn fixes(context: &Context<'_>) -> Result<(), CliError> {
    edits(context, "fixes", None)
}

pub(super) fn cheats(context: &Context<'_>) -> Result<(), CliError> {
    edits(context, "cheats", None)
}

/// Goes on where an earlier run of the same code ended. `edits.md` has what came of it so far, as the
/// book shows it.
pub(super) fn many_edits(context: &Context<'_>) -> Result<(), CliError> {
    let mut noted = Noted {
        file: context.folder.join("grades.tsv"),
        wanted: 0,
        edits: Vec::new(),
    };
    let mut graded = Ok(());
    // Each once before any of them again: whatever the time, all have been seen.
    while noted.wanted < OF_EACH_EDIT && !context.interrupt().is_set() {
        noted.wanted += 1;
        let round = beside_a_busy_core(|| {
            let fixes = edits(context, "fixes", Some(&mut noted));
            fixes.and(edits(context, "cheats", Some(&mut noted)))
        });
        graded = graded.and(round);
        files::replace(&context.folder.join("edits.md"), noted.table(context)?)?;
    }
    graded
}

/// Grades that outlive the run which gave them.
struct Noted {
    file: PathBuf,
    /// How many of each edit are enough.
    wanted: usize,
    /// Chapter, kind and name of each edit, and how its rows in the file begin.
    edits: Vec<(u32, &'static str, String, String)>,
}

impl Noted {
    /// Verdict and reason of each grade whose row begins so.
    fn grades(&self, beginning: &str) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let rows = text.lines().filter_map(|row| row.strip_prefix(beginning));
        rows.filter_map(|grade| grade.split_once('\t'))
            .map(|(word, reason)| (word.to_owned(), reason.to_owned()))
            .collect()
    }

    fn add(&self, beginning: &str, answer: &Answer) -> Result<(), CliError> {
        let grade = format!("{beginning}{}\t{}", answer.word, answer.reason);
        append(&self.file, &grade)
    }

    /// How often each edit was graded how, a table for each chapter.
    fn table(&self, context: &Context<'_>) -> Result<String, CliError> {
        let mut text = String::new();
        // Writing to a String cannot fail.
        for chapter in &context.chapters {
            let title = chapter.file()?.title;
            let number = chapter.number;
            let _ = writeln!(
                text,
                "<details>\n<summary>Chapter {number}: {title}</summary>\n"
            );
            let _ = writeln!(
                text,
                "| edit | should | did | because |\n| --- | --- | --- | --- |"
            );
            let of_chapter = |(of, ..): &&(u32, _, _, _)| *of == number;
            for (_, kind, name, beginning) in self.edits.iter().filter(of_chapter) {
                let grades = self.grades(beginning);
                let mut words = BTreeMap::<&str, u32>::new();
                for (word, _) in &grades {
                    *words.entry(word).or_default() += 1;
                }
                let words: Vec<_> = words
                    .iter()
                    .map(|(word, n)| format!("{n} {word}"))
                    .collect();
                let because = grades
                    .last()
                    .map_or("", |(_, reason)| reason)
                    .replace('|', "\\|");
                let should = if *kind == "fixes" { "pass" } else { "fail" };
                let _ = writeln!(
                    text,
                    "| {name} | {should} | {} | {because} |",
                    words.join(", ")
                );
            }
            text.push_str("\n</details>\n\n");
        }
        Ok(text)
    }
}

/// Grades all edits of this kind, in a copy of the workshop: once, or as often as it takes until enough of
/// each are `noted`.
fn edits(
    context: &Context<'_>,
    kind: &'static str,
    mut noted: Option<&mut Noted>,
) -> Result<(), CliError> {
    let scratch = Scratch::copy(context)?;
    let mut failures = Vec::new();
    for chapter in &context.chapters {
        for (edit, code) in edited(chapter, kind)? {
            scratch.put(chapter, &code)?;
            let check = format!("check {}", chapter.number);
            let what = format!("chapter {}, {kind}: `{}`", chapter.number, edit.name);
            let row = format!("{}\t{what}\t", scratch.hash_of(chapter)?);
            let left = match &mut noted {
                Some(noted) => {
                    if noted.wanted == 1 {
                        let edit = (chapter.number, kind, edit.name.clone(), row.clone());
                        noted.edits.push(edit);
                    }
                    noted.wanted.saturating_sub(noted.grades(&row).len())
                }
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
                    Ok(()) => noted
                        .as_ref()
                        .map_or(Ok(()), |noted| noted.add(&row, &answer))?,
                }
            }
        }
    }
    match failures.as_slice() {
        [] => Ok(()),
        failures => Err(CliError::bad(failures.join("\n"))),
    }
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
