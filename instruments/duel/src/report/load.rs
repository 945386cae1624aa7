//! A load for people and scripts: lines, JSON and one HTML file.

use std::fmt::Write as _;

use drawing::canvas::Look;
use drawing::html::{self as page_html, Head, document, scrolled, section};
use drawing::percentiles::{Line, by_percentile};
use drawing::table::{Column, Table, sentence_case};
use engine::load::{Piece, Pieces, TrafficOutcome};
use engine::outcome::{Latency, Outcome};
use engine::traffic::Traffic;
use maud::html;
use serde::Serialize;
use statistics::figures;
use terminal::exit::Exit;
use terminal::outcome::figures_of;

use super::repeat;

/// Result that `load --format json` prints: the outcome of all routes together, and each route.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The outcome of all routes together.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Each route.
    pub routes: Vec<OfRoute>,
    /// Conditions of `--fail-if` that were met, in words.
    pub failed_if: Vec<String>,
    /// Sentences that a reader must know beside the figures.
    pub notes: Vec<String>,
}

/// Answers of one route.
#[derive(Debug, Serialize)]
pub struct OfRoute {
    /// Its name.
    pub name: String,
    /// Right answers.
    pub completed: u64,
    /// Their latencies.
    pub latency: Latency,
    /// Times within them, with `--stream`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
}

/// Times within the answers of a route.
#[derive(Debug, Serialize)]
pub struct Stream {
    /// Kind of the pieces.
    pub kind: Piece,
    /// Number of answers whose first byte came.
    pub answers: u64,
    /// Times to the first byte of the body.
    pub first_byte: Latency,
    /// Number of pieces that came after another of the same answer.
    pub further: u64,
    /// Times between such two.
    pub between: Latency,
}

impl Stream {
    fn of(pieces: &Pieces) -> Self {
        Self {
            kind: pieces.kind,
            answers: pieces.first_byte.count(),
            first_byte: pieces.first_byte.summary(),
            further: pieces.between.count(),
            between: pieces.between.summary(),
        }
    }

    /// Returns the times with their names and numbers.
    fn times(&self) -> [(&'static str, &Latency, u64); 2] {
        let between = match self.kind {
            Piece::Event => "between events",
            Piece::Line => "between lines",
            Piece::Chunk => "between chunks",
        };
        [
            ("first byte", &self.first_byte, self.answers),
            (between, &self.between, self.further),
        ]
    }
}

impl Report {
    /// Describes the outcome of a load.
    pub fn new(outcome: TrafficOutcome, traffic: &Traffic, notes: Vec<String>) -> Self {
        let all = outcome.users.all();
        let mut routes = Vec::new();
        for (route, seen) in traffic.routes.iter().zip(&outcome.users.routes) {
            routes.push(OfRoute {
                name: route.name.clone(),
                completed: seen.latency.count(),
                latency: seen.latency.summary(),
                stream: seen.pieces.as_ref().map(Stream::of),
            });
        }
        let mut outcome = Outcome::from(outcome);
        if let (Some(all), 2..) = (all, traffic.routes.len()) {
            // A chapter's second route holds its writes; here all routes count alike.
            outcome.latency = all.summary();
            outcome.service_latency = None;
            outcome.writes = 0;
        }
        Self {
            outcome,
            routes,
            failed_if: Vec::new(),
            notes,
        }
    }

    /// Formats the figures for a terminal.
    pub fn text(&self) -> String {
        // Writing to a String cannot fail.
        let mut text = figures_of(&self.outcome);
        let has_several = self.routes.len() > 1;
        for route in &self.routes {
            if has_several {
                let _ = writeln!(
                    text,
                    "{}: {}, median {}, 90 % {}, 99 % {}",
                    route.name,
                    figures::things(route.completed, "answer"),
                    at(&route.latency, 0.5),
                    at(&route.latency, 0.9),
                    at(&route.latency, 0.99)
                );
            }
            let Some(stream) = &route.stream else {
                continue;
            };
            for (name, latency, count) in stream.times() {
                let indent = if has_several { "  " } else { "" };
                let _ = writeln!(
                    text,
                    "{indent}{name}: median {}, 99 % {}, longest {} ({})",
                    at(latency, 0.5),
                    at(latency, 0.99),
                    at(latency, 1.0),
                    figures::things(count, "time")
                );
            }
        }
        for failure in &self.failed_if {
            let _ = writeln!(text, "failed by --fail-if {failure}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// Returns the report: one HTML file that needs nothing else.
    pub fn page(&self, exit: Exit, machine: &str, command: &str) -> String {
        let (verdict, class) = match exit {
            Exit::Good => ("good", "proved"),
            Exit::Invalid => ("invalid", "invalid"),
            _ => ("failed", "refuted"),
        };
        let names: Vec<&str> = self.routes.iter().map(|route| &*route.name).collect();
        let figures = figures_of(&self.outcome);
        let mut lines = figures.lines();
        let head = Head {
            kicker: "A load on a service",
            title: "How long answers took",
            verdict: &verdict,
            class,
            sentence: &sentence_case(lines.next().unwrap_or_default()),
            provenance: html! { (names.join(", ")) ". " (machine) "." },
        };
        let plots = self.plots();
        let measured = html! {
            (page_html::pictures(plots.iter().map(|(title, svg)| {
                (svg.as_str(), format!("{title} over percentiles."), "")
            })))
            (scrolled(&self.table(), "Latencies", "raw"))
            ul {
                @for line in lines { li { (sentence_case(line)) } }
                @for failure in &self.failed_if { li { "Failed by --fail-if " (failure) } }
                @for note in &self.notes { li { (sentence_case(note)) } }
            }
        };
        let sections = html! {
            (section("latencies", "Latencies", &measured))
            (repeat(command))
        };
        document(&head, &sections)
    }

    /// Returns all latencies: of each route, whole answers and the times within them.
    fn latencies(&self) -> Vec<(&'static str, &OfRoute, &Latency, u64)> {
        let mut all = Vec::new();
        for route in &self.routes {
            all.push(("whole answer", route, &route.latency, route.completed));
            for (name, latency, count) in route.stream.iter().flat_map(Stream::times) {
                all.push((name, route, latency, count));
            }
        }
        all
    }

    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for (name, route, latency, count) in self.latencies() {
            let mut row = vec![route.name.clone(), name.to_owned()];
            row.push(figures::count(count as f64));
            for quantile in [0.5, 0.9, 0.99, 1.0] {
                row.push(at(latency, quantile));
            }
            rows.push(row);
        }
        let columns = [
            Column::text("request"),
            Column::text("time"),
            Column::figures("number"),
            Column::figures("median"),
            Column::figures("90 %"),
            Column::figures("99 %"),
            Column::figures("longest"),
        ];
        Table::new(columns, rows)
    }

    /// Draws one plot for each kind of time, with a line for each route.
    fn plots(&self) -> Vec<(String, String)> {
        let all = self.latencies();
        let mut names: Vec<&str> = Vec::new();
        for (name, ..) in &all {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let mut plots = Vec::new();
        for name in names {
            let mut lines = Vec::new();
            for (kind, route, latency, count) in &all {
                if *kind == name {
                    lines.push(Line {
                        name: &route.name,
                        look: Look::nth(lines.len()),
                        quantiles: &latency.quantiles,
                        lower_bound_from: latency.lower_bound_from,
                        count: *count,
                    });
                }
            }
            let title = sentence_case(name);
            plots.extend(by_percentile(&title, &[], &lines, "route").map(|svg| (title, svg)));
        }
        plots
    }
}

/// Formats the latency at `quantile` (0 to 1).
fn at(latency: &Latency, quantile: f64) -> String {
    match latency.point(quantile) {
        Some(found) => {
            let over = figures::over(found.is_lower_bound);
            format!("{over}{}", figures::milliseconds(found.ms))
        }
        None => "-".to_owned(),
    }
}
