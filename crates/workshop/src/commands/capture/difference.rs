//! The solution as the book shows it: a diff from the problem, code only.

use similar::TextDiff;

use crate::chapters::{Chapter, Workshop};
use crate::exercise;
use terminal::exit::CliError;

/// Writes it again, or compares it with the one that is there.
pub(super) fn derive(workshop: &Workshop, chapter: &Chapter, verify: bool) -> Result<(), CliError> {
    let file = workshop.captures(chapter.number).join("solution.diff");
    crate::commands::derived::put(&file, &difference(chapter)?, verify)
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
