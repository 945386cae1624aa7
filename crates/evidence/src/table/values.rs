//! Single figures for the book's sentences, each between two anchors:
//! `{{#include ../flamegraphs/chapter1/values.md:effect}}`.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{median_text, unknown};
use crate::{
    claim::{Metric, PROBLEM, SOLUTION},
    figures, flamegraph,
    record::{ProfileKind, Purpose, Record},
    verdict::Analysis,
};

/// All single figures of a capture, as a Markdown file of anchors. `folded`
/// holds the folded stacks by file name.
pub fn values(record: &Record, analysis: &Analysis, folded: &BTreeMap<String, String>) -> String {
    let mut text = String::from("<!-- Generated from capture.json: include single anchors. -->\n");
    for (name, value) in named(record, analysis, folded) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END: {name} -->"
        );
    }
    text
}

fn named(
    record: &Record,
    analysis: &Analysis,
    folded: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut values = Vec::new();
    let mut add = |name: &str, value: String| values.push((name.to_owned(), value));
    let chapter = &record.chapter;
    let (effect, mechanism) = (&analysis.effect, &analysis.mechanism);
    let ratio = |value: Option<f64>| value.map_or_else(unknown, figures::ratio);
    let count = |value: Option<f64>| value.map_or_else(unknown, figures::count);
    let rate = |value: f64| Metric::RequestsPerSecond.text(value);

    add("verdict", analysis.verdict.kind.to_string());
    add("reason", analysis.verdict.reason.clone());
    add("command", format!("`{}`", record.command));
    add(
        "date",
        record
            .started
            .get(..10)
            .unwrap_or(&record.started)
            .to_owned(),
    );
    add("commit", format!("`{}`", record.commit.in_short()));
    add("machine", record.environment.in_a_line());
    add(
        "users",
        figures::count(chapter.effect_setting().users.into()),
    );

    let prediction = analysis.prediction.as_ref();
    add(
        "predicted-ratio",
        ratio(prediction.map(|prediction| prediction.ratio)),
    );
    add(
        "predicted-problem",
        count(prediction.and_then(|prediction| prediction.problem)),
    );
    add(
        "predicted-solution",
        count(prediction.and_then(|prediction| prediction.solution)),
    );
    add(
        "prediction",
        prediction.map_or_else(unknown, |prediction| prediction.sentence.clone()),
    );
    if let Some(law) = &analysis.law {
        add("law-off", figures::percent(law.off.abs()));
    }

    add("mechanism-problem", count(mechanism.problem));
    add("mechanism-solution", count(mechanism.solution));

    add("effect", ratio(effect.ratio));
    add("effect-low", ratio(effect.interval.map(|(low, _)| low)));
    add("effect-high", ratio(effect.interval.map(|(_, high)| high)));
    add("claimed", figures::ratio(effect.claimed));
    add(
        "noise-floor",
        effect.noise_floor.map_or_else(unknown, figures::percent),
    );
    add("pairs", effect.pairs.len().to_string());

    for variant in [PROBLEM, SOLUTION] {
        for (name, metric) in [
            ("requests-per-second", Metric::RequestsPerSecond),
            ("p50", Metric::P50Ms),
            ("p99", Metric::P99Ms),
        ] {
            add(
                &format!("{variant}-{name}"),
                median_text(record, metric, variant),
            );
        }
        add(
            &format!("{variant}-cpu-per-request"),
            cpu_per_request(record, variant),
        );
    }
    if let Some(bound) = &analysis.bound {
        add("bound", figures::count(bound.bound.round()));
        add("bound-measured", rate(bound.measured));
        add("bound-share", figures::percent(bound.share));
        add("bound-problem", bound.problem.map_or_else(unknown, rate));
        if let Some(setting) = chapter.setting(&bound.setting) {
            add("bound-users", figures::count(setting.users.into()));
            add("bound-think", figures::count(setting.think_s));
        }
    }
    for point in &analysis.points {
        let stem = format!("point-{}", point.setting.replace('_', "-"));
        let rate = |value: Option<f64>| value.map_or_else(unknown, |v| effect.metric.text(v));
        add(&stem, ratio(point.ratio));
        add(&format!("{stem}-problem"), rate(point.problem));
        add(&format!("{stem}-solution"), rate(point.solution));
        let predicted = point.prediction.as_ref().map(|prediction| prediction.ratio);
        add(&format!("{stem}-predicted"), ratio(predicted));
    }
    for profile in &record.profiles {
        let stem = format!("{}-{}", profile.variant, profile.kind.key());
        add(
            &format!("{stem}-samples"),
            figures::count(profile.samples as f64),
        );
        if let (ProfileKind::Cpu, Some(capacity)) = (profile.kind, profile.capacity) {
            let busy = (profile.samples as f64 / capacity.max(1) as f64).min(1.0);
            add(&format!("{stem}-busy"), figures::percent(busy));
        }
        if let Some(share) = profile.frames_share {
            add(&format!("{stem}-share"), figures::percent(share));
        }
        let stacks = folded
            .get(&profile.folded_name())
            .map_or("", String::as_str);
        if let Ok(Some((leaf, share))) = flamegraph::most_frequent_leaf(stacks) {
            add(
                &format!("{stem}-top"),
                format!("`{}`", leaf.replace('`', "'")),
            );
            add(&format!("{stem}-top-share"), figures::percent(share));
        }
    }
    for published in &record.references {
        add(
            &format!("published-{}", published.figure),
            published.value.clone(),
        );
    }
    values
}

/// The server's processor time for each answer, over all rounds of the effect.
fn cpu_per_request(record: &Record, variant: &str) -> String {
    let rounds = || {
        record
            .rounds_for(Purpose::Effect)
            .filter(|round| round.variant == variant)
    };
    let seconds: Option<f64> = rounds().map(|round| round.server_cpu_s).sum();
    let answers: u64 = rounds().map(|round| round.outcome.completed).sum();
    match seconds {
        Some(seconds) if answers > 0 => {
            format!(
                "{} µs",
                figures::count((seconds / answers as f64 * 1e6).round())
            )
        }
        _ => unknown(),
    }
}
