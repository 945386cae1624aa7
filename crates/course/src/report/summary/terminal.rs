//! The output of `prove`: the short table, and the details. At most 80 columns, no colour needed.

use std::fmt::Write as _;

use statistics::figures;

use super::Summary;
use crate::report::rows::Row;

const WIDTH: usize = 80;
const LABEL: usize = 12;

impl Summary {
    /// Formats the short table for people: verdict, root cause, effect, guardrails, and the report's path.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let title = format!("Chapter {}: {}", self.chapter, self.title);
        let _ = writeln!(
            text,
            "{title}\n{}",
            "-".repeat(title.chars().count().min(WIDTH))
        );
        let verdict = self.verdict.to_string().to_uppercase();
        add_line(&mut text, "Verdict", &format!("{verdict}: {}", self.reason));
        for row in self.rows.iter().filter(|row| !row.is_prediction()) {
            add_line(&mut text, row.label, &self.in_words(row));
        }
        if let Some(report) = &self.report {
            add_line(&mut text, "Report", report);
        }
        text
    }

    /// Formats the rest of the table: predictions, the generator, and figures published elsewhere.
    pub fn details(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, words: &str| add_line(&mut text, label, words);
        for row in self.rows.iter().filter(|row| row.is_prediction()) {
            line(row.label, &self.in_words(row));
        }
        let share = match self.generator.cpu_share {
            Some(share) => format!(
                "it used at most {} of its CPU time",
                figures::percent(share)
            ),
            None => "its share of the CPU time is unknown".to_owned(),
        };
        line(
            "Generator",
            &format!(
                "{}, {}; {share}.",
                self.generator.name,
                figures::things(self.generator.users.into(), "user")
            ),
        );
        if !self.reference.is_empty() {
            let mut figures = Vec::new();
            for published in &self.reference {
                figures.push(format!("{} ({})", published.value, published.label));
            }
            line("Published", &format!("by others: {}.", figures.join("; ")));
        }
        text
    }

    fn in_words(&self, row: &Row) -> String {
        let figures = match (row.problem.as_str(), row.fix.as_str()) {
            ("", "") => String::new(),
            (problem, fix) => format!(": {problem} in the problem, {fix} in the {}", self.variant),
        };
        let remark = if row.remark.is_empty() {
            String::new()
        } else {
            format!("; {}", row.remark)
        };
        format!("{}{figures}{remark}.", row.name)
    }
}

/// Adds a label and its words. Lines break between words, and further lines are indented below the first. A
/// word longer than the line, such as a path, stays whole.
fn add_line(text: &mut String, label: &str, words: &str) {
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
