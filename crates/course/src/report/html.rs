//! The report: one HTML file that needs nothing else, not even a network.

mod sections;

use drawing::html::{Head, document, frame, pictures, section};
use drawing::table::sentence_case;
use maud::{Markup, html};
use statistics::figures;
use statistics::profile::ProfileKind;

use crate::report::capture::{Capture, CaptureError};

/// Writes the report of a capture.
///
/// # Errors
///
/// Fails if a profile cannot be drawn.
pub fn page(capture: &Capture) -> Result<String, CaptureError> {
    let record = &capture.record;
    let chapter = &record.chapter;
    let analysis = capture.analysis();
    let verdict = &analysis.verdict;
    let head = Head {
        kicker: "A proof by measurement",
        title: &format!("Chapter {}: {}", chapter.chapter, chapter.title),
        verdict: &verdict.kind,
        class: &verdict.kind.to_string(),
        sentence: &sentence_case(&verdict.reason),
        provenance: html! {
            "Measured on " time datetime=(record.started) { (record.started) }
            " " (record.inputs)
            ": " (record.environment.in_a_line()) "."
        },
    };
    let repeat = html! {
        pre tabindex="0" { code { (record.command) } }
        p {
            "The rounds are new each time. "
            "A different machine gives different figures and should give the same verdict."
        }
    };
    let sections = html! {
        (sections::claims(record, &analysis))
        (sections::matrix(record))
        (plots(capture))
        (flamegraphs(capture)?)
        (sections::rounds(record))
        (sections::environment(record))
        (sections::published(record))
        (section("repeat", "Repeat it", &repeat))
    };
    Ok(document(&head, &sections))
}

fn plots(capture: &Capture) -> Markup {
    let plots = capture.plots();
    let drawn = plots.iter().map(|(name, svg)| {
        let (alt, caption) = words_for_plot(name);
        (svg.as_str(), alt.to_owned(), caption)
    });
    html! { @if !plots.is_empty() { (section("plots", "Every round", &pictures(drawn))) } }
}

fn words_for_plot(name: &str) -> (&'static str, &'static str) {
    match name {
        "latency" | "pings" => (
            "Latency by percentile: one line for each round, problem and solution.",
            "Each line is a round. It ends at its rarest answer: a round of 30 answers knows nothing of the slowest in a hundred. A hollow mark is a lower bound: too many requests were still waiting when the round ended.",
        ),
        "connections-problem" => (
            "Connections that the problem's server has taken up and finished, over time.",
            "Where the lines run together, a connection is taken up when another is finished.",
        ),
        "connections-solution" => (
            "Connections that the solution's server has taken up and finished, over time.",
            "Where taking up runs ahead, the distance is what the server has before it.",
        ),
        "queue-problem" => (
            "Requests that wait in the problem, and its answers in time per second, over time.",
            "A queue that is longer than its clients wait leaves no answer in time, for as long as it drains.",
        ),
        "queue-solution" => (
            "Requests that wait in the solution, and its answers in time per second, over time.",
            "A bounded queue: the answers stay at the capacity.",
        ),
        _ => (
            "Requests per second of every round, in the order of the runs.",
            "Hollow marks are the same server again: how far they lie from the filled ones is the noise.",
        ),
    }
}

fn flamegraphs(capture: &Capture) -> Result<Markup, CaptureError> {
    let drawn = capture.flamegraphs()?;
    let content = html! {
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
    };
    Ok(html! {
        @if !drawn.is_empty() { (section("flamegraphs", "Where the time goes", &content)) }
    })
}

fn words_for_flamegraph(capture: &Capture, name: &str) -> String {
    let profile = capture
        .record
        .profiles
        .iter()
        .find(|profile| name == profile.name());
    let Some(profile) = profile else {
        return "What the fix took away. Widths are the problem's; red frames have a smaller share in the fix, blue ones a \
                larger. It says nothing of speed: once a wait is gone, what is left has a larger share. What only the \
                fix does is not in it."
            .to_owned();
    };
    let counted = match profile.kind {
        // Its samples are microseconds.
        ProfileKind::Await => format!(
            "the requests in flight spent {} s",
            figures::count((profile.samples as f64 / 1e6).round())
        ),
        ProfileKind::Cpu | ProfileKind::Heap => format!(
            "{}, each {}",
            figures::things(profile.samples, "sample"),
            profile.unit
        ),
    };
    format!(
        "{}, {} s in the scenario \"{}\": {counted}.",
        profile.variant,
        figures::count(profile.seconds),
        profile.scenario,
    )
}
