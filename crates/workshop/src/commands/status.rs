//! `cargo workshop`: where the learner is, and what to do next.

use course::analysis::grade::GradeKind;
use course::analysis::verdict::VerdictKind;
use serde::Serialize;

use crate::chapters::{Chapter, Workshop};
use crate::cli::Format;
use crate::exercise::Exercise;
use crate::hints;
use crate::prediction::Prediction;
use crate::progress_file::{ChapterProgress, OwnProof, Progress};
use crate::tools::Tools;
use terminal::exit::{CliError, Exit};
use terminal::json;

/// Object that `--format json` prints.
#[derive(Debug, Serialize)]
struct Report {
    chapters: Vec<Status>,
    /// The next step, in a sentence or two.
    next: String,
}

#[derive(Debug, Serialize)]
struct Status {
    chapter: u32,
    title: String,
    minutes: u32,
    exercise: String,
    /// It differs from the shipped one.
    edited: bool,
    hints_seen: usize,
    hints: usize,
    /// The reader's last prediction.
    prediction: Option<Prediction>,
    /// The last check; `None` before the first.
    check: Option<GradeKind>,
    /// The exercise was edited after that.
    edited_since_check: bool,
    /// The last proof on this machine.
    proof: Option<VerdictKind>,
    /// The last proof of the exercise, if it was not edited since.
    own_proof: Option<OwnProof>,
}

pub(crate) fn run(format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let progress = Progress::read(&workshop)?;
    let chapters: Vec<Status> = workshop
        .chapters()?
        .iter()
        .map(|chapter| status(&workshop, chapter, &progress.chapter(chapter.number)))
        .collect::<Result<_, _>>()?;
    let next = next(&chapters, book_command(&Tools::of(&workshop)));
    match format {
        Format::Json => json::print_as("status", &Report { chapters, next })?,
        Format::Human => {
            println!("A profiling workshop for Rust web services\n");
            for status in &chapters {
                println!(
                    "  {:>2}  {:<40} {:>3} min  {}",
                    status.chapter, status.title, status.minutes, status
                );
            }
            println!("\n{next}");
        }
    }
    Ok(Exit::Good)
}

fn status(
    workshop: &Workshop,
    chapter: &Chapter,
    done: &ChapterProgress,
) -> Result<Status, CliError> {
    let file = chapter.file()?;
    let exercise = Exercise::read(chapter)?;
    let now = engine::service::program::digest(exercise.text.as_deref().unwrap_or_default());
    let hints = hints::read(chapter)?.len();
    Ok(Status {
        chapter: chapter.number,
        title: file.title,
        minutes: file.minutes,
        exercise: workshop.shown(&exercise.file),
        edited: exercise.is_edited(),
        hints_seen: done.hints.min(hints),
        hints,
        prediction: done.predictions.last().cloned(),
        check: done.check.as_ref().map(|check| check.kind),
        edited_since_check: done
            .check
            .as_ref()
            .is_some_and(|check| check.exercise != now),
        proof: done.proof.as_ref().map(|proof| proof.kind),
        own_proof: done.own_proof.clone().filter(|proof| proof.exercise == now),
    })
}

impl Status {
    fn is_passed(&self) -> bool {
        self.check == Some(GradeKind::Passed)
    }

    fn is_untouched(&self) -> bool {
        !self.edited
            && self.hints_seen == 0
            && self.prediction.is_none()
            && self.check.is_none()
            && self.proof.is_none()
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_untouched() {
            return f.write_str("not begun");
        }
        let mut parts = Vec::new();
        if self.prediction.is_some() {
            parts.push("predicted".to_owned());
        }
        match (self.check, self.edited) {
            (None, true) => parts.push("edited, not checked yet".to_owned()),
            (None, false) => parts.push("exercise not changed yet".to_owned()),
            (Some(kind), _) => parts.push(
                match kind {
                    GradeKind::Passed => "passed",
                    GradeKind::Failed => "last check failed",
                    GradeKind::Invalid => "last check was invalid",
                }
                .to_owned(),
            ),
        }
        if self.edited_since_check {
            parts.push("edited since".to_owned());
        }
        if self.hints_seen > 0 {
            parts.push(format!("hints {} of {}", self.hints_seen, self.hints));
        }
        if let Some(proof) = self.proof {
            parts.push(match proof {
                VerdictKind::Invalid => "last proof was an invalid run".to_owned(),
                decided => format!("claim {decided} here"),
            });
        }
        if let Some(OwnProof { kind, gain, .. }) = &self.own_proof {
            let gain = match gain {
                Some(gain) => format!(": {}", statistics::figures::gain(*gain)),
                None => String::new(),
            };
            parts.push(format!("your fix {kind} here{gain}"));
        }
        f.write_str(&parts.join(", "))
    }
}

/// Command that opens the book, or makes it possible.
fn book_command(tools: &Tools) -> &'static str {
    if tools.mdbook().is_file() {
        ".tools/bin/mdbook serve --open"
    } else if children::find("mdbook").is_some() {
        "mdbook serve --open"
    } else {
        "src/introduction.md; for a browser: cargo workshop setup mdbook"
    }
}

/// The first chapter that is not passed, and the smallest step in it.
fn next(chapters: &[Status], book: &str) -> String {
    let Some(open) = chapters.iter().find(|chapter| !chapter.is_passed()) else {
        let unproved = chapters
            .iter()
            .find(|chapter| chapter.proof != Some(VerdictKind::Proved));
        return match unproved {
            Some(chapter) => format!(
                "Every exercise is passed. Next, see the claim proved on this machine:\n  cargo \
                 workshop prove {}",
                chapter.chapter
            ),
            None => "Every exercise is passed and every claim proved on this machine. To read \
                     a chapter's steps with git: cargo workshop steps 1"
                .to_owned(),
        };
    };
    let number = open.chapter;
    if open.is_untouched() {
        return format!(
            "Next: read chapter {number} in the book ({book}), change {}, then\n  cargo workshop check \
             {number}, or at each save: cargo workshop watch {number}",
            open.exercise
        );
    }
    if open.check == Some(GradeKind::Failed) && !open.edited_since_check {
        return if open.hints_seen < open.hints {
            format!(
                "Next: change {}, or ask for a hint:\n  cargo workshop hint {number}",
                open.exercise
            )
        } else {
            format!(
                "Next: you have seen every hint; one way to do it:\n  cargo workshop solution {number}"
            )
        };
    }
    if !open.edited {
        return format!(
            "Next: change {}, then\n  cargo workshop check {number}",
            open.exercise
        );
    }
    format!("Next: have your edit graded:\n  cargo workshop check {number}")
}
