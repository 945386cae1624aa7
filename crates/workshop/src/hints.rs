//! A chapter's `hints.md`: one hint under each `## title`.

use serde::Serialize;

use crate::chapters::Chapter;
use crate::exercise;
use terminal::exit::CliError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Hint {
    /// Counts from 1.
    pub(crate) number: usize,
    /// A question, usually.
    pub(crate) title: String,
    /// Markdown.
    pub(crate) text: String,
}

/// All hints of a chapter, in order.
pub(crate) fn read(chapter: &Chapter) -> Result<Vec<Hint>, CliError> {
    let file = chapter.folder.join("hints.md");
    let hints = parse(&exercise::read(&file)?);
    if hints.is_empty() {
        return Err(CliError::usage(format!(
            "{} holds no hint: each begins with a line `## title`",
            file.display()
        )));
    }
    Ok(hints)
}

fn parse(text: &str) -> Vec<Hint> {
    let mut hints: Vec<Hint> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        // The book's anchors.
        if line.starts_with("<!--") && line.ends_with("-->") {
            continue;
        }
        if let Some(title) = line.strip_prefix("## ").filter(|_| !in_code) {
            hints.push(Hint {
                number: hints.len() + 1,
                title: title.trim().to_owned(),
                text: String::new(),
            });
        } else if let Some(hint) = hints.last_mut() {
            hint.text.push_str(line);
            hint.text.push('\n');
        }
    }
    for hint in &mut hints {
        hint.text = hint.text.trim().to_owned();
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_heading_and_what_follows() {
        let hints = parse(
            "# Hints\n\nNot one.\n\n## First?\n\nLook.\n\n```sh\n## a comment\n```\n\n## Second?\n<!-- ANCHOR: second -->\nAct.\n<!-- ANCHOR_END: second -->\n",
        );
        let titles: Vec<_> = hints.iter().map(|h| (h.number, h.title.as_str())).collect();
        assert_eq!(titles, [(1, "First?"), (2, "Second?")]);
        assert_eq!(hints[0].text, "Look.\n\n```sh\n## a comment\n```");
        assert_eq!(hints[1].text, "Act.");
    }
}
