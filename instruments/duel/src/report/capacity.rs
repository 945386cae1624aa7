//! A search for the capacity of a service, for people and scripts: table, JSON and one HTML file.

use std::fmt::Write as _;

use drawing::canvas::{Axis, Drawn, Look, Plot};
use drawing::html::{self as page_html, Head, document, scrolled, section};
use drawing::scale::span;
use drawing::table::{Column, Table, sentence_case};
use engine::capacity::{Ended, Found, Tried};
use maud::html;
use serde::Serialize;
use statistics::capacity::Capacity;
use statistics::condition::Condition;
use statistics::figures;
use terminal::{Tone, coloured};

use super::repeat;

/// Factor between rates that share a row of the table.
const ALIKE: f64 = 1.04;
/// Length of the longest bar in the table.
const LONGEST_BAR: f64 = 16.0;
/// Largest factor between the ends of the interval of a capacity that is known.
const WIDEST: f64 = 3.0;

/// Result that `load --find --format json` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Conditions that the service had to keep.
    pub conditions: Vec<String>,
    /// The search itself.
    #[serde(flatten)]
    pub found: Found,
    /// Limit of the service, by its debug endpoints or by the generator; `None` if neither tells.
    pub limit: Option<String>,
    /// Time of the search in seconds.
    pub seconds: f64,
}

impl Report {
    /// Describes a search.
    pub fn new(
        conditions: &[Condition],
        found: Found,
        limit: Option<String>,
        seconds: f64,
    ) -> Self {
        Self {
            conditions: conditions.iter().map(ToString::to_string).collect(),
            found,
            limit,
            seconds,
        }
    }

    /// Returns whether the capacity is known and did not drift.
    pub fn is_known(&self) -> bool {
        let capacity = self.found.capacity;
        let is_steady =
            capacity.is_some_and(|capacity| capacity.drift.is_none() && !is_vague(&capacity));
        is_steady && matches!(self.found.ended, Ended::Decided | Ended::TimeOver)
    }

    /// Returns the result in one sentence.
    pub fn sentence(&self) -> String {
        let goal = self.conditions.join(" and ");
        let rate = |rate: f64| figures::count(rounded(rate));
        match (self.found.ended, self.found.capacity, self.found.held) {
            (Ended::NothingHolds, ..) => {
                format!("Not even {} requests/s keep {goal}.", rate(self.lowest()))
            }
            (Ended::Generator, _, Some(held)) => format!(
                "At least {} requests/s keep {goal}. The load generator can send no more: take --with locust and other \
                 machines for more.",
                rate(held)
            ),
            (_, Some(capacity), _) => {
                let (low, high) = capacity.interval;
                let mut sentence = format!(
                    "{} requests/s ({} to {}) keep {goal}.",
                    rate(capacity.rate),
                    rate(low),
                    rate(high)
                );
                if let Some(drift) = capacity.drift {
                    let way = if drift > 1.0 { "rose" } else { "fell" };
                    let _ = write!(
                        sentence,
                        " But the capacity {way} during the search, to about {} times: let the service warm up, close \
                         other programs, and repeat.",
                        figures::ratio(drift)
                    );
                }
                if is_vague(&capacity) {
                    sentence += " The time was too short to know it better: give it more, with --at-most, or close other programs.";
                }
                sentence
            }
            (_, None, Some(held)) => format!(
                "At least {} requests/s keep {goal}; the time was over before a step failed.",
                rate(held)
            ),
            (_, None, None) => format!(
                "Nothing is known: the time was over before a step kept {goal}; begin lower, with --rate."
            ),
        }
    }

    fn lowest(&self) -> f64 {
        let rates = self.found.steps.iter().map(|step| step.rate);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// Returns steps of nearly the same rate together, the lowest rate first.
    fn groups(&self) -> Vec<Vec<&Tried>> {
        let mut steps: Vec<&Tried> = self.found.steps.iter().collect();
        steps.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let mut groups: Vec<Vec<&Tried>> = Vec::new();
        for step in steps {
            match groups.last_mut() {
                Some(group) if step.rate <= group[0].rate * ALIKE => group.push(step),
                _ => groups.push(vec![step]),
            }
        }
        groups
    }

    pub(super) fn table(&self, with_bars: bool) -> Table {
        let groups = self.groups();
        let p99 = |group: &[&Tried]| middle(group, |step| step.p99_ms);
        let highest = groups.iter().filter_map(|group| p99(group));
        let highest = highest.fold(f64::MIN_POSITIVE, f64::max);
        let mut rows = Vec::new();
        for group in &groups {
            let ms = |value: Option<f64>| value.map_or("-".to_owned(), figures::milliseconds);
            let of = |figure: fn(&Tried) -> f64| {
                middle(group, |step| Some(figure(step))).unwrap_or_default()
            };
            let holds = group.iter().filter(|step| step.holds).count();
            let mut row = vec![
                figures::count(rounded(of(|step| step.rate))),
                figures::count(rounded(of(|step| step.answered))),
                ms(middle(group, |step| step.p50_ms)),
                ms(p99(group)),
                figures::percent(of(|step| step.errors)),
                figures::three_digits(of(|step| step.in_flight)),
                match (holds, group.len()) {
                    (0, 1) => "no".to_owned(),
                    (1, 1) => "yes".to_owned(),
                    (holds, all) => format!("{holds} of {all}"),
                },
            ];
            if with_bars {
                row.push(bar(p99(group).unwrap_or_default(), highest));
            }
            rows.push(row);
        }
        let mut columns = vec![
            Column::figures("requests/s"),
            Column::figures("answers/s"),
            Column::figures("median"),
            Column::figures("99 %"),
            Column::figures("errors"),
            Column::figures("in flight"),
            Column::figures("holds"),
        ];
        if with_bars {
            columns.push(Column::text("99 %"));
        }
        Table::new(columns, rows)
    }

    /// Formats the result, the table with its curve, and the notes for a terminal.
    pub fn text(&self) -> String {
        let tone = match self.found.ended {
            Ended::NothingHolds => Tone::Bad,
            _ if self.is_known() => Tone::Good,
            _ => Tone::Unsure,
        };
        let mut text = format!("{}: {}\n", coloured(&"capacity", tone), self.sentence());
        if self.found.steps.is_empty() {
            return text;
        }
        let steps = figures::things(self.found.steps.len() as u64, "step");
        let _ = write!(
            text,
            "\n{}\n{steps} in {:.0} s.",
            self.table(true).text(),
            self.seconds
        );
        if let Some(limit) = &self.limit {
            let _ = write!(text, " The limit: {limit}");
        }
        text.push('\n');
        for note in &self.found.notes {
            let _ = writeln!(text, "{}", sentence_case(note));
        }
        text
    }

    /// Returns the report: one HTML file that needs nothing else.
    pub fn page(&self, load: &str, machine: &str, command: &str) -> String {
        let head = Head {
            kicker: "The capacity of a service",
            title: "How many requests per second it sustains",
            verdict: &match self.found.capacity {
                Some(capacity) => format!("{} requests/s", figures::count(rounded(capacity.rate))),
                None => "unknown".to_owned(),
            },
            class: if self.is_known() {
                "proved"
            } else {
                "inconclusive"
            },
            sentence: &self.sentence(),
            provenance: html! { (load) " " (machine) "." },
        };
        let plots = self.plots();
        let steps = html! {
            p {
                "Each step is an open load at one rate. Rows join steps of nearly the same rate. The capacity is the rate at \
                 which half of the steps hold; its interval holds it with a probability of 95 %."
            }
            (page_html::pictures(plots.iter().map(|(title, svg)| {
                (svg.as_str(), format!("{title} at each rate."), "")
            })))
            (scrolled(&self.table(false), "Steps", "raw"))
            @if let Some(limit) = &self.limit { p { "The limit: " (limit) } }
            @if !self.found.notes.is_empty() {
                ul { @for note in &self.found.notes { li { (sentence_case(note)) } } }
            }
        };
        let sections = html! {
            (section("steps", "Steps", &steps))
            (repeat(command))
        };
        document(&head, &sections)
    }

    pub(super) fn plots(&self) -> Vec<(&'static str, String)> {
        let groups = self.groups();
        let series = |name: &str, look: usize, figure: fn(&Tried) -> Option<f64>| {
            let mut drawn = Drawn::of(name, Look::nth(look));
            for group in &groups {
                let rate = middle(group, |step| Some(step.rate)).unwrap_or_default();
                let value = middle(group, figure);
                drawn.line.extend(
                    value
                        .filter(|value| *value > 0.0)
                        .map(|value| (rate, value)),
                );
            }
            drawn.marks.clone_from(&drawn.line);
            drawn
        };
        let latency = vec![
            series("median", 2, |step| step.p50_ms),
            series("99 %", 0, |step| step.p99_ms),
        ];
        let in_flight = vec![series("", 1, |step| Some(step.in_flight))];
        let mut plots = Vec::new();
        for (title, name, drawn) in [
            ("Latency", "latency, in ms", latency),
            ("Requests in flight", "requests in flight", in_flight),
        ] {
            let points = || drawn.iter().flat_map(|drawn| &drawn.line);
            let (Some(rates), Some(values)) = (
                span(points().map(|(rate, _)| *rate)),
                span(points().map(|(_, value)| *value)),
            ) else {
                continue;
            };
            let plot = Plot {
                title,
                description: format!("{title} at rates of {} to {}.", rates.0, rates.1),
                across: Axis::values("requests per second", rates, &figures::count),
                has_columns: false,
                up: Axis::values(name, values, &figures::count),
                drawn,
            };
            plots.extend(plot.svg().map(|svg| (title, svg)));
        }
        plots
    }
}

/// Returns whether the interval of a capacity says next to nothing.
fn is_vague(capacity: &Capacity) -> bool {
    let (low, high) = capacity.interval;
    high > WIDEST * low
}

/// Returns the median of a figure over some steps.
fn middle(group: &[&Tried], figure: impl Fn(&Tried) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = group.iter().filter_map(|step| figure(step)).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Returns a rate with as many digits as a search tells.
pub(super) fn rounded(rate: f64) -> f64 {
    if rate >= 100.0 {
        rate.round()
    } else {
        (rate * 10.0).round() / 10.0
    }
}

/// Returns a bar for `value` on a logarithmic scale down to a hundredth of the highest.
fn bar(value: f64, highest: f64) -> String {
    let share = 1.0 + (value / highest).log10() / 2.0;
    // Between 0 and the longest bar.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = (share.clamp(0.0, 1.0) * LONGEST_BAR).round() as usize;
    "█".repeat(length.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(interval: (f64, f64)) -> Report {
        let found = Found {
            capacity: Some(Capacity {
                rate: 127.0,
                interval,
                drift: None,
            }),
            ended: Ended::TimeOver,
            ..Found::default()
        };
        Report::new(&[], found, None, 45.0)
    }

    /// Four steps on a busy machine found this.
    #[test]
    fn an_interval_that_says_nothing_is_no_known_capacity() {
        let vague = report((54.1, 933.0));
        assert!(!vague.is_known());
        assert!(
            vague.sentence().contains("too short"),
            "{}",
            vague.sentence()
        );
        let known = report((110.0, 150.0));
        assert!(known.is_known());
        assert!(
            !known.sentence().contains("too short"),
            "{}",
            known.sentence()
        );
    }
}
