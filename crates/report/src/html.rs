//! The report: one HTML file that needs nothing else, not even a network.

pub(crate) mod frame;
mod sections;

pub(crate) use self::sections::scrolled;

use std::fmt::Display;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    capture::{Capture, CaptureError},
    table::sentence_case,
};
use analysis::verdict::VerdictKind;
use measurement::figures;

const STYLE: &str = include_str!("html/page.css");

/// Nothing but what stands in the file: no network, no other file.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The head of every report: what it is about, and how it came out.
pub(crate) fn head(title: &str, verdict: &dyn Display) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            link rel="icon" href="data:,";
            title { (title) " – " (verdict.to_string()) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

/// The report of a capture, verdict first.
///
/// # Errors
///
/// When a profile or a plot cannot be drawn.
pub fn page(capture: &Capture) -> Result<String, CaptureError> {
    let record = &capture.record;
    let chapter = &record.chapter;
    let analysis = capture.analysis();
    let title = format!("Chapter {}: {}", chapter.chapter, chapter.title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, &analysis.verdict.kind))
            body {
                header {
                    p.kicker { "A proof by measurement" }
                    h1 { (title) }
                    p.verdict.(class_of(analysis.verdict.kind)) {
                        strong { (analysis.verdict.kind) }
                        " "
                        (sentence_case(&analysis.verdict.reason))
                    }
                    p.provenance {
                        "Measured on " time datetime=(record.started) { (record.started) }
                        " at commit " code { (record.commit.in_short()) }
                        ": " (record.environment.in_a_line()) "."
                    }
                }
                main {
                    (sections::claims(record, &analysis))
                    (sections::matrix(record))
                    (plots(capture)?)
                    (flamegraphs(capture)?)
                    (sections::rounds(record))
                    (sections::environment(record))
                    (sections::published(record))
                    section aria-labelledby="repeat" {
                        h2 #repeat { "Repeat it" }
                        pre tabindex="0" { code { (record.command) } }
                        p {
                            "The rounds are new each time. "
                            "A different machine gives different figures and should give the same verdict."
                        }
                    }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn class_of(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Proved => "proved",
        VerdictKind::Inconclusive => "inconclusive",
        VerdictKind::Refuted => "refuted",
        VerdictKind::Invalid => "invalid",
    }
}

fn plots(capture: &Capture) -> Result<Markup, CaptureError> {
    let plots = capture.plots()?;
    Ok(html! {
        @if !plots.is_empty() {
            section aria-labelledby="plots" {
                h2 #plots { "Every round" }
                div.pictures {
                    @for (name, svg) in &plots {
                        @let (alt, caption) = words_for_plot(name);
                        figure {
                            img src=(data_url(svg)) alt=(alt) width="480" height="370";
                            figcaption { (caption) }
                        }
                    }
                }
            }
        }
    })
}

fn words_for_plot(name: &str) -> (&'static str, &'static str) {
    match name {
        "latency" => (
            "Latency by percentile: one line for each round, problem and solution.",
            "Each line is a round. It ends at its rarest answer: a round of 30 answers knows nothing of the slowest in a hundred. Requests that were still waiting when the round ended are not in it.",
        ),
        "connections-problem" => (
            "Connections that the problem's server has taken up and finished, over time.",
            "Where the lines run together, a connection is taken up when another is finished.",
        ),
        "connections-solution" => (
            "Connections that the solution's server has taken up and finished, over time.",
            "Where taking up runs ahead, the distance is what the server has before it.",
        ),
        _ => (
            "Requests per second of every round in the order in which they ran.",
            "Hollow marks are the same server again: how far they lie from the filled ones is the noise.",
        ),
    }
}

pub(crate) fn data_url(svg: &str) -> String {
    format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg))
}

fn flamegraphs(capture: &Capture) -> Result<Markup, CaptureError> {
    let drawn = capture.flamegraphs()?;
    Ok(html! {
        @if !drawn.is_empty() {
            section aria-labelledby="flamegraphs" {
                h2 #flamegraphs { "Where the time goes" }
                p {
                    "Click a frame to zoom in, \"Reset Zoom\" to come back; \"Search\" (or Ctrl+F inside a picture) "
                    "colours the frames that match and says their share."
                }
                @for (name, svg) in &drawn {
                    figure {
                        (frame::of(svg, &format!("Flamegraph {name}")))
                        figcaption { (words_for_flamegraph(capture, name)) }
                    }
                }
            }
        }
    })
}

fn words_for_flamegraph(capture: &Capture, name: &str) -> String {
    let profile = capture
        .record
        .profiles
        .iter()
        .find(|profile| name == format!("{}.{}", profile.variant, profile.kind.key()));
    let Some(profile) = profile else {
        return "The change from problem to solution: widths are the solution's; red frames have a larger share than before, blue ones a smaller. What only the problem did is not in it.".to_owned();
    };
    format!(
        "{}, {} s in the scenario \"{}\"; each of the {} stands for {}.",
        profile.variant,
        figures::count(profile.seconds),
        profile.scenario,
        figures::things(profile.samples, "sample"),
        profile.unit
    )
}
