//! The solution as the book shows it: a diff from the problem, code only.

use similar::TextDiff;

use crate::chapters::{Chapter, Workshop};
use crate::exercise;
use crate::exit::CliError;
use crate::files;

const NAME: &str = "solution.diff";

pub(super) fn write(workshop: &Workshop, chapter: &Chapter) -> Result<(), CliError> {
    let file = workshop.captures(chapter.number).join(NAME);
    files::replace(&file, difference(chapter)?)
}

pub(super) fn verify(workshop: &Workshop, chapter: &Chapter) -> Result<(), CliError> {
    let file = workshop.captures(chapter.number).join(NAME);
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    if there == difference(chapter)? {
        Ok(())
    } else {
        Err(CliError::bad(format!(
            "{} is not the difference between problem.rs and solution.rs; run `cargo workshop \
             capture {} --derive`",
            file.display(),
            chapter.number
        )))
    }
}

fn difference(chapter: &Chapter) -> Result<String, CliError> {
    let problem = code(&exercise::read(&chapter.source("problem"))?);
    let solution = code(&exercise::read(&chapter.source("solution"))?);
    Ok(TextDiff::from_lines(&problem, &solution)
        .unified_diff()
        .context_radius(3)
        .header("problem.rs", "solution.rs")
        .to_string())
}

/// Without the opening comment and the anchors that the book cuts at.
fn code(text: &str) -> String {
    let (_, code) = exercise::split(text);
    code.split_inclusive('\n')
        .filter(|line| !line.trim_start().starts_with("// ANCHOR"))
        .collect()
}
