//! A report's page: one HTML file that needs nothing else, not even a network.

pub mod frame;

use std::fmt::Display;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::table::Table;

const STYLE: &str = include_str!("page.css");

/// Security policy of a page: it may use only its own content, no network and no other file.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Beginning of every report.
pub struct Head<'a> {
    /// A line above the title.
    pub kicker: &'a str,
    /// The subject of the report.
    pub title: &'a str,
    /// The verdict.
    pub verdict: &'a dyn Display,
    /// The style class that colours the verdict.
    pub class: &'a str,
    /// Reason for the verdict, in one sentence.
    pub sentence: &'a str,
    /// Provenance of the figures: load, machine and time.
    pub provenance: Markup,
}

/// Returns the page of a report, with the verdict first.
pub fn document(head: &Head<'_>, sections: &Markup) -> String {
    let verdict = head.verdict.to_string();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { (head.title) " – " (verdict) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.kicker { (head.kicker) }
                    h1 { (head.title) }
                    p.verdict.(head.class) { strong { (verdict) } " " (head.sentence) }
                    p.provenance { (head.provenance) }
                }
                main { (sections) }
            }
        }
    };
    page.into_string()
}

/// Returns a section of a report.
pub fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (heading) }
            (content)
        }
    }
}

/// Returns plots beside each other, each with a text for readers who cannot see it and, if there is more to say,
/// a caption.
pub fn pictures<'a>(plots: impl Iterator<Item = (&'a str, String, &'a str)>) -> Markup {
    html! {
        div.pictures {
            @for (svg, alt, caption) in plots {
                figure {
                    img src={ "data:image/svg+xml;base64," (STANDARD.encode(svg)) } alt=(alt) width="480" height="370";
                    @if !caption.is_empty() { figcaption { (caption) } }
                }
            }
        }
    }
}

/// Returns a table that a narrow page scrolls. The first cell of a row is its heading.
pub fn scrolled(table: &Table, label: &str, class: &str) -> Markup {
    html! {
        div.scroll.(class) tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in &table.columns { th.number[column.has_figures] scope="col" { (column.head) } } } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            th.number[table.columns[0].has_figures] scope="row" { (row[0]) }
                            @for (cell, column) in row.iter().zip(&table.columns).skip(1) { td.number[column.has_figures] { (cell) } }
                        }
                    }
                }
            }
        }
    }
}
