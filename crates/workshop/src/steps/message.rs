//! A step's commit message: what, why, and what was measured.

use analysis::verdict::{Analysis, analyse};
use duel::figures;
use measurement::chapter_file::{ChapterFile, Step};
use measurement::record::Record;

use duel::cli::git::Git;

/// The recorded evidence that is committed beside the code.
#[derive(Debug)]
pub(super) struct Measured {
    record: Record,
    analysis: Analysis,
}

impl Measured {
    /// `None` for a chapter without a capture, or with one of another layout:
    /// the message then goes without figures.
    pub(super) fn read(git: &Git, base: &str, chapter: u32) -> Option<Self> {
        let file = format!("{base}:flamegraphs/chapter{chapter}/capture.json");
        let record: Record = serde_json::from_str(&git.ask(["cat-file", "blob", &file])?).ok()?;
        (record.format == Record::FORMAT).then(|| Self {
            analysis: analyse(&record),
            record,
        })
    }

    /// A sentence or two about a variant that was measured.
    fn sentence(&self, variant: &str) -> Option<String> {
        let effect = self.analysis.effect()?;
        let root_cause = self.analysis.root_cause()?;
        let (value, reading) = match variant {
            "problem" => (effect.problem?, root_cause.problem?),
            "solution" => (effect.fix?, root_cause.fix?),
            _ => return None,
        };
        let quantity = &effect.claim.quantity;
        let mut text = format!(
            "Measured on {}, {} users: {} {}, {} {}.",
            self.record.started.get(..10)?,
            figures::count(f64::from(effect.users)),
            effect.claim.label(),
            quantity.text(effect.claim.unit, value),
            root_cause.claim.label(),
            figures::count(reading),
        );
        if let ("solution", Some(ratio), Some((low, high))) =
            (variant, effect.ratio, effect.interval)
        {
            text = format!(
                "{text} That is {} than the problem (95 % interval {} to {}).",
                figures::gain(ratio),
                figures::ratio(low),
                figures::ratio(high)
            );
        }
        Some(text)
    }
}

/// The trailer by which a step is known again, with chapter, place and variant.
pub(super) const TRAILER: &str = "Workshop-Step: ";

pub(super) fn compose(
    chapter: &ChapterFile,
    number: i64,
    step: &Step,
    measured: Option<&Measured>,
) -> String {
    let total = chapter.steps.len();
    let place = format!("{number}/{total}");
    let mut paragraphs = vec![
        format!("Chapter {}, {place}: {}", chapter.chapter, step.name),
        wrapped(&step.why),
    ];
    if let Some(sentence) = measured.and_then(|measured| measured.sentence(&step.variant)) {
        paragraphs.push(wrapped(&sentence));
    }
    paragraphs.push(format!(
        "{TRAILER}{} {place} {}",
        chapter.package, step.variant
    ));
    paragraphs.join("\n\n") + "\n"
}

/// Lines of at most 72 characters, as git shows messages best.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 72 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_wrapped_at_72_characters() {
        let text = wrapped(&"four ".repeat(40));
        assert!(text.lines().all(|line| line.chars().count() <= 72));
        assert_eq!(text.lines().count(), 3);
    }
}
