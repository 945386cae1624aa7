//! A step's commit message: the change, its reason, and its measurements.

use course::analysis::finding::{is_at_least, median_of};
use course::analysis::verdict::{Analysis, analyse};
use course::measurement::chapter_file::{ChapterFile, Step};
use course::measurement::claim::{PROBLEM, SOLUTION};
use course::measurement::record::{Purpose, Record, Round};
use statistics::figures;
use statistics::profile::ProfileKind;

use terminal::git::Git;

/// Plot of the variants in a chapter's table, below its record's folder.
const PLOT_OF_VARIANTS: &str = "plots/variants.svg";

/// The recorded evidence that is committed beside the code.
#[derive(Debug)]
pub(super) struct Measured {
    record: Record,
    /// Kind of profile by the chapter's file of today, which may differ from the record's.
    shown_by: ProfileKind,
    has_plot_of_variants: bool,
    analysis: Analysis,
}

impl Measured {
    /// `None` for a chapter without a capture, or with one of another layout:
    /// the message then goes without figures.
    pub(super) fn read(git: &Git, base: &str, chapter: &ChapterFile) -> Option<Self> {
        let folder = format!("{base}:flamegraphs/chapter{}", chapter.chapter);
        let blob = |file: &str| git.ask(["cat-file", "blob", &format!("{folder}/{file}")]);
        let record = Record::parse(&blob("capture.json")?).ok()?;
        if record.format != Record::FORMAT {
            return None;
        }
        Some(Self {
            analysis: analyse(&record),
            record,
            shown_by: chapter.shown_by,
            has_plot_of_variants: blob(PLOT_OF_VARIANTS).is_some(),
        })
    }

    /// Sentence with a variant's measurement, the command that repeats it, and the picture to open.
    fn evidence(&self, variant: &str) -> Option<String> {
        let chapter = &self.record.chapter;
        let name = variant.replace('_', "-");
        let (scenario, measured, picture) = if let Some(measured) = self.of_proof(variant) {
            let scenario = chapter.claims.effect().scenario();
            let picture = format!("{variant}.{}.svg", self.shown_by.key());
            (scenario, measured, picture)
        } else {
            let (scenario, measured) = self.of_matrix(&name)?;
            let plot = if self.has_plot_of_variants {
                PLOT_OF_VARIANTS
            } else {
                "matrix.md"
            };
            (scenario, measured, plot.to_owned())
        };
        let number = chapter.chapter;
        // A proof of any variant measures the problem, too.
        let asked = match variant {
            PROBLEM => String::new(),
            _ => format!(" --variant {name}"),
        };
        Some(format!(
            "Measured on {}, {} users: {measured} Repeat it with `cargo workshop prove {number}{asked}`; the \
             record is flamegraphs/chapter{number}/capture.json, what to look at \
             flamegraphs/chapter{number}/{picture}.",
            self.record.started.get(..10)?,
            figures::count(f64::from(chapter.users(scenario))),
        ))
    }

    /// Effect and root cause of problem or solution.
    fn of_proof(&self, variant: &str) -> Option<String> {
        let effect = self.analysis.effect()?;
        let root_cause = self.analysis.root_cause()?;
        let (value, reading) = match variant {
            PROBLEM => (effect.problem?, root_cause.problem?),
            SOLUTION => (effect.fix?, root_cause.fix?),
            _ => return None,
        };
        let mut text = format!(
            "{} {}, {} {}.",
            effect.claim.label(),
            effect.claim.quantity.text(effect.claim.unit, value),
            root_cause.claim.label(),
            figures::count(reading),
        );
        if let (SOLUTION, Some(ratio), Some((low, high))) = (variant, effect.ratio, effect.interval)
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

    /// The effect's figure of another variant in the chapter's table, beside the problem's there.
    fn of_matrix(&self, variant: &str) -> Option<(&str, String)> {
        let record = &self.record;
        let effect = record.chapter.claims.effect();
        let scenarios = &record.chapter.matrix.as_ref()?.scenarios;
        let mut scenario = scenarios.last()?;
        for name in scenarios {
            if name == effect.scenario() {
                scenario = name;
            }
        }
        let rounds: Vec<&Round> = record
            .rounds_for(Purpose::Matrix)
            .filter(|round| round.scenario == *scenario)
            .collect();
        let figure = |variant| {
            let median = median_of(&effect.quantity, &rounds, variant)?;
            let over = figures::over(is_at_least(&effect.quantity, &rounds, variant));
            Some(over.to_owned() + &effect.quantity.text(effect.unit, median))
        };
        let (own, problem) = (figure(variant)?, figure(PROBLEM)?);
        let text = format!("{} {own}, where the problem has {problem}.", effect.label());
        Some((scenario, text))
    }
}

/// The trailer by which a step is known again, with chapter, place and variant.
pub(super) const TRAILER: &str = "Workshop-Step: ";

pub(super) fn compose(
    chapter: &ChapterFile,
    (number, total): (i64, usize),
    step: &Step,
    measured: Option<&Measured>,
) -> String {
    let place = format!("{number}/{total}");
    let mut paragraphs = vec![
        format!("Chapter {}, {place}: {}", chapter.chapter, step.name),
        wrapped(&step.why),
    ];
    if let Some(measured) = measured
        && let Some(sentence) = measured.evidence(&step.variant)
    {
        paragraphs.push(wrapped(&sentence));
    }
    paragraphs.push(format!(
        "{TRAILER}{} {place} {}",
        chapter.package, step.variant
    ));
    paragraphs.join("\n\n") + "\n"
}

/// Lines of at most 72 characters, as git shows messages best.
pub(super) fn wrapped(text: &str) -> String {
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
