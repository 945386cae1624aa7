//! The short table that `prove` prints: at most 80 columns, no colour needed.

use std::fmt::Write as _;

use super::Summary;
use crate::table::point_in_words;
use measurement::figures;

const WIDTH: usize = 80;
const LABEL: usize = 12;

impl Summary {
    /// The short table for people, at most 80 columns wide. The verdict comes
    /// last, where a terminal leaves the eye.
    pub fn table(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(unknown, figures::count);
        let mut text = String::new();
        let title = format!("Chapter {}: {}", self.chapter, self.title);
        let _ = writeln!(
            text,
            "{title}\n{}",
            "-".repeat(title.chars().count().min(WIDTH))
        );
        let mut row = |label: &str, words: &str| add_row(&mut text, label, words);
        row(
            "Law",
            &format!(
                "{} predicts {} times.",
                self.law.name,
                self.law
                    .predicted_ratio
                    .map_or_else(unknown, figures::ratio)
            ),
        );
        row(
            "Mechanism",
            &format!(
                "{}: {} in the problem, {} in the solution.",
                self.mechanism.name,
                number(self.mechanism.problem),
                number(self.mechanism.solution)
            ),
        );
        for beside in &self.beside {
            let text = |reading: &Option<String>| reading.clone().unwrap_or_else(unknown);
            row(
                "Beside it",
                &format!(
                    "{}: {} in the problem, {} in the solution.",
                    beside.name,
                    text(&beside.problem),
                    text(&beside.solution)
                ),
            );
        }
        row("Effect", &self.effect_in_words());
        let floor = self
            .effect
            .noise_floor
            .map_or_else(unknown, figures::percent);
        row(
            "Noise floor",
            &format!("{floor}: so far apart were equal servers at most."),
        );
        self.add_further_findings(&mut row);
        let share = self.generator.cpu_share.map_or_else(
            || "unknown processor time".to_owned(),
            |share| format!("at most {} of its processor time", figures::percent(share)),
        );
        row(
            "Generator",
            &format!(
                "{}, {}, {share}.",
                self.generator.name,
                figures::things(self.generator.users.into(), "user")
            ),
        );
        if !self.reference.is_empty() {
            let figures: Vec<_> = self
                .reference
                .iter()
                .map(|published| format!("{} ({})", published.value, published.label))
                .collect();
            row("Published", &format!("elsewhere: {}.", figures.join("; ")));
        }
        row(
            "Verdict",
            &format!(
                "{}: {}",
                self.verdict.to_string().to_uppercase(),
                self.reason
            ),
        );
        if let Some(report) = &self.report {
            row("Report", report);
        }
        text
    }

    /// What only some chapters claim: nearness to a law, what the cure costs, other settings.
    fn add_further_findings(&self, row: &mut impl FnMut(&str, &str)) {
        let share = |share: Option<f64>| share.map_or_else(unknown, figures::percent);
        if let Some(bound) = &self.bound {
            row(
                "At the law",
                &format!(
                    "{} of the {} a second that {} allows in the setting `{}`.",
                    figures::percent(bound.share),
                    figures::count(bound.bound.round()),
                    self.law.name,
                    bound.setting
                ),
            );
        }
        if let Some(utilised) = &self.utilised {
            row(
                "Utilised",
                &format!(
                    "{} of the utilisation law's bound for the processor time given{}; at least {} was \
                     claimed.",
                    share(utilised.share),
                    figures::interval_of_share(utilised.interval),
                    figures::percent(utilised.claimed)
                ),
            );
        }
        if let Some(price) = &self.price {
            row(
                "Price",
                &format!(
                    "{} of the problem's requests a second{}; at least {} was claimed.",
                    share(price.throughput),
                    figures::interval_of_share(price.interval),
                    figures::percent(price.claimed)
                ),
            );
            let reading = |value: Option<f64>| value.map_or_else(unknown, figures::count);
            for one in &price.limits {
                row(
                    "Price",
                    &format!(
                        "{}: {} in the problem, {} in the solution; at most {} was claimed.",
                        one.limit.name,
                        reading(one.problem),
                        reading(one.solution),
                        figures::count(one.limit.at_most)
                    ),
                );
            }
        }
        for point in &self.points {
            row(
                "Elsewhere",
                &format!("{}: {}.", point.setting, point_in_words(point)),
            );
        }
    }

    fn effect_in_words(&self) -> String {
        let effect = &self.effect;
        let metric = effect.metric;
        let (Some(ratio), Some((low, high))) = (effect.ratio, effect.interval) else {
            return format!("{}: no ratio could be formed.", metric.label());
        };
        let value = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |v| metric.text(v));
        format!(
            "{}: {}, 95 % interval {} to {} ({} against {}).",
            metric.label(),
            figures::gain(ratio),
            figures::ratio(low),
            figures::ratio(high),
            value(effect.problem),
            value(effect.solution)
        )
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// A label and its words, broken between words, the rest below the first.
/// A word longer than the line, such as a path, stays whole.
fn add_row(text: &mut String, label: &str, words: &str) {
    let _ = write!(text, "{label:LABEL$}");
    let mut column = LABEL;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if column > LABEL && column + 1 + length > WIDTH {
            let _ = write!(text, "\n{:LABEL$}", "");
            column = LABEL;
        }
        if column > LABEL {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}
