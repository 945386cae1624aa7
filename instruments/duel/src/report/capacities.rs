//! A comparison of two capacities, for people and scripts: tables, Markdown, JSON and one HTML file.

use std::fmt::Write as _;

use drawing::html::{self as page_html, Head, document, scrolled, section};
use drawing::intervals::{Row, against_one};
use drawing::table::{Column, Table, sentence_case};
use engine::capacity::Found;
use engine::comparison::Capacities;
use maud::html;
use serde::Serialize;
use statistics::capacity::Ratio;
use statistics::condition::Condition;
use statistics::figures;
use statistics::verdict::Speed;
use terminal::coloured;

use super::capacity::{self, rounded};
use super::{Side, class_of, quoted, repeat, tone_of};

/// Result that `compare --at-capacity --format json` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Kind of the verdict.
    pub verdict: Speed,
    /// Reason for the verdict.
    pub reason: String,
    /// Length of the comparison in seconds.
    pub seconds: f64,
    /// Conditions that the services had to keep.
    pub conditions: Vec<String>,
    /// Ratio of the capacities, with an interval that holds it in 98 % of comparisons.
    pub effect: Option<Ratio>,
    /// The base.
    pub base: OfSide,
    /// The change.
    pub change: OfSide,
    /// Sentences that a reader must know beside the verdict.
    pub notes: Vec<String>,
}

/// One of the two builds, and the search for its capacity.
#[derive(Debug, Serialize)]
pub struct OfSide {
    /// The build.
    #[serde(flatten)]
    pub side: Side,
    /// The search.
    #[serde(flatten)]
    pub found: Found,
}

impl Report {
    /// Describes a comparison.
    pub fn new(
        conditions: &[Condition],
        compared: Capacities,
        (base, change): (Side, Side),
        seconds: f64,
    ) -> Self {
        Self {
            verdict: compared.verdict.kind,
            reason: sentence_case(&compared.verdict.reason),
            seconds,
            conditions: conditions.iter().map(ToString::to_string).collect(),
            effect: compared.ratio,
            base: OfSide {
                side: base,
                found: compared.base,
            },
            change: OfSide {
                side: change,
                found: compared.change,
            },
            notes: compared.notes,
        }
    }

    /// Returns the number of steps of both.
    pub fn steps(&self) -> u64 {
        (self.base.found.steps.len() + self.change.found.steps.len()) as u64
    }

    fn sides(&self) -> [(&'static str, &OfSide); 2] {
        [("base", &self.base), ("change", &self.change)]
    }

    /// Returns the search of one side as a report of its own.
    fn search(&self, of: &OfSide) -> capacity::Report {
        capacity::Report {
            conditions: self.conditions.clone(),
            found: of.found.clone(),
            limit: None,
            seconds: self.seconds,
        }
    }

    /// Returns the capacities, one below the other.
    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for (name, of) in self.sides() {
            let (mut capacity, mut interval) = ("-".to_owned(), "-".to_owned());
            if let Some(found) = of.found.capacity {
                let rate = |rate: f64| figures::count(rounded(rate));
                capacity = rate(found.rate);
                interval = format!("{} to {}", rate(found.interval.0), rate(found.interval.1));
            }
            let steps = &of.found.steps;
            let holds = steps.iter().filter(|step| step.holds).count();
            rows.push(vec![
                name.to_owned(),
                capacity,
                interval,
                format!("{holds} of {}", steps.len()),
            ]);
        }
        let columns = [
            Column::text(""),
            Column::figures("requests/s"),
            Column::figures("interval"),
            Column::figures("steps that hold"),
        ];
        Table::new(columns, rows)
    }

    /// Formats the verdict, the capacities and the notes for a terminal.
    pub fn text(&self) -> String {
        let verdict = coloured(&self.verdict, tone_of(self.verdict));
        let mut text = format!("{verdict}: {}\n", self.reason);
        for (name, of) in self.sides() {
            if let Some(commit) = &of.side.commit {
                let _ = writeln!(text, "{name}: {commit}");
            }
        }
        if self.steps() > 0 {
            let _ = writeln!(
                text,
                "\nHighest rates that keep {}:\n{}\n{} in {:.0} s.",
                self.conditions.join(" and "),
                self.table().text(),
                sentence_case(&figures::things(self.steps(), "step")),
                self.seconds
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", sentence_case(note));
        }
        text
    }

    /// Formats the comparison as Markdown for a pull request.
    pub fn markdown(&self) -> String {
        let [base, change] = self.sides().map(|(_, of)| quoted(&of.side.title()));
        let mut text = format!(
            "### {}: {change} against {base}\n\n{}\n\n",
            sentence_case(&self.verdict.to_string()),
            self.reason
        );
        if self.steps() > 0 {
            let _ = writeln!(
                text,
                "Highest rates that keep {}:\n\n{}",
                self.conditions.join(" and "),
                self.table().markdown()
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "- {}", sentence_case(note));
        }
        text
    }

    /// Returns the report: one HTML file that needs nothing else.
    pub fn page(&self, load: &str, machine: &str, command: &str, margin: f64) -> String {
        let title = format!(
            "Capacity of {} against {}",
            self.change.side.title(),
            self.base.side.title()
        );
        let head = Head {
            kicker: "Two builds compared at their capacities",
            title: &title,
            verdict: &self.verdict,
            class: class_of(self.verdict),
            sentence: &self.reason,
            provenance: html! { (load) " " (machine) "." },
        };
        let mut rows = Vec::new();
        if let Some(Ratio { ratio, interval }) = self.effect {
            let [low, middle, high] = [interval.0, ratio, interval.1].map(figures::ratio);
            rows.push(Row {
                name: "Capacity".to_owned(),
                ratio,
                interval,
                text: format!("{middle} ({low} to {high})"),
            });
        }
        let capacities = html! {
            p {
                "Highest rates that keep " (self.conditions.join(" and ")) ", each with an interval of 95 %. That of the "
                "ratio holds the truth 98 times in a hundred. Each step is an open load on a fresh server; base and change "
                "take turns."
            }
            (against_one(&rows, margin))
            (scrolled(&self.table(), "Capacities", "raw"))
            @if !self.notes.is_empty() {
                ul { @for note in &self.notes { li { (sentence_case(note)) } } }
            }
        };
        let steps = html! {
            @for (name, of) in self.sides() {
                @let search = self.search(of);
                @let plots = search.plots();
                h3 { (sentence_case(name)) }
                (page_html::pictures(plots.iter().map(|(title, svg)| {
                    (svg.as_str(), format!("{title} of the {name} at each rate."), "")
                })))
                (scrolled(&search.table(false), &format!("Steps of the {name}"), "raw"))
            }
        };
        let sections = html! {
            (section("capacities", "Capacities", &capacities))
            @if self.steps() > 0 { (section("steps", "Steps", &steps)) }
            (repeat(command))
        };
        document(&head, &sections)
    }
}
