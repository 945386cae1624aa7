//! The hints of `capstone/hints.md`: one under each `## title`.

use std::path::Path;

use terminal::exit::CliError;

/// A hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// A question, usually.
    pub title: String,
    /// Markdown.
    pub text: String,
}

/// Reads all hints of a file, in their order.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub fn read(file: &Path) -> Result<Vec<Hint>, CliError> {
    let text = std::fs::read_to_string(file).map_err(CliError::because(file.display()))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<Hint> {
    let mut hints = Vec::new();
    for part in format!("\n{text}").split("\n## ").skip(1) {
        let (title, text) = part.split_once('\n').unwrap_or((part, ""));
        hints.push(Hint {
            title: title.trim().to_owned(),
            text: text.trim().to_owned(),
        });
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_heading_and_what_follows() {
        let hints = parse("# Hints\n\nNot one.\n\n## First?\n\nLook.\n\n    curl\n\n## Second?\n");
        let both: Vec<(&str, &str)> = hints
            .iter()
            .map(|hint| (hint.title.as_str(), hint.text.as_str()))
            .collect();
        assert_eq!(both, [("First?", "Look.\n\n    curl"), ("Second?", "")]);
    }
}
