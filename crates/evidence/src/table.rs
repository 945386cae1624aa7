//! A capture in Markdown, for the book to include: no measured number is typed by hand.

mod values;

use std::fmt::Write as _;

pub use self::values::values;
use crate::{
    claim::{Metric, PROBLEM, SOLUTION},
    figures,
    outcome::GeneratorKind,
    record::{Purpose, Record, Round},
    statistics,
    verdict::{Analysis, limit_in_words},
};

/// Where the figures come from, in one line below each table.
pub fn provenance(record: &Record) -> String {
    let version = record
        .tools_in_words()
        .map_or_else(String::new, |tools| format!("; {tools}"));
    format!(
        "*Measured by `{}` at commit `{}` on {} (UTC): {}{version}.*\n",
        record.command,
        record.commit.in_short(),
        record.started.get(..10).unwrap_or(&record.started),
        record.environment.in_a_line(),
    )
}

/// The chapter's figures: both variants side by side, prediction and verdict.
pub fn table(record: &Record, analysis: &Analysis) -> String {
    let chapter = &record.chapter;
    let setting = chapter.effect_setting();
    let (mechanism, effect) = (&analysis.mechanism, &analysis.effect);
    let mut text = String::from("| | problem | solution | |\n| --- | ---: | ---: | --- |\n");
    let mut row = |name: &str, problem: &str, solution: &str, remark: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {name} | {problem} | {solution} | {remark} |");
    };
    let users = figures::things(setting.users.into(), "user");
    let pause = if setting.think_s > 0.0 {
        format!("{} s pause", figures::count(setting.think_s))
    } else {
        "no pause".to_owned()
    };
    let prediction = &analysis.prediction;
    row(
        &format!(
            "{}: at most, requests a second ({users}, {pause})",
            chapter.law.name()
        ),
        &figures::count(prediction.problem.round()),
        &figures::count(prediction.solution.round()),
        &format!("predicts {} times", figures::ratio(prediction.ratio)),
    );
    let reading = |value: Option<f64>| value.map_or_else(unknown, figures::count);
    let claim = &chapter.mechanism;
    row(
        &mechanism.name,
        &reading(mechanism.problem),
        &reading(mechanism.solution),
        &format!(
            "claimed: {}, {}",
            limit_in_words(claim.problem, setting.users),
            limit_in_words(claim.solution, setting.users)
        ),
    );
    let value = |value: Option<f64>| value.map_or_else(unknown, |v| effect.metric.text(v));
    row(
        effect.metric.label(),
        &value(effect.problem),
        &value(effect.solution),
        &effect_in_words(analysis),
    );
    for metric in [Metric::RequestsPerSecond, Metric::P50Ms, Metric::P99Ms] {
        if metric != effect.metric {
            row(
                metric.label(),
                &median_text(record, metric, PROBLEM),
                &median_text(record, metric, SOLUTION),
                "",
            );
        }
    }
    if let Some(bound) = &analysis.bound {
        let setting = chapter.setting(&bound.setting).unwrap_or(&chapter.load);
        row(
            &format!(
                "requests a second with {} and {} s pause",
                figures::things(setting.users.into(), "user"),
                figures::count(setting.think_s)
            ),
            &bound
                .problem
                .map_or_else(unknown, |v| Metric::RequestsPerSecond.text(v)),
            &Metric::RequestsPerSecond.text(bound.measured),
            &format!(
                "{} of the law's {}",
                figures::percent(bound.share),
                figures::count(bound.bound.round())
            ),
        );
    }
    let _ = writeln!(
        text,
        "\nVerdict: **{}**. {}\n\n{}",
        analysis.verdict.kind,
        sentence_case(&analysis.verdict.reason),
        provenance(record)
    );
    text.trim_end().to_owned() + "\n"
}

/// Every round's raw figures.
pub fn rounds(record: &Record) -> String {
    let mut text = String::from(
        "| round | why | variant | setting | answers | requests a second | median | p99 | errors | generator | server CPU |\n\
         | ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (round, number) in record.rounds.iter().zip(1..) {
        let outcome = &round.outcome;
        let latency = |q: f64| {
            outcome
                .latency
                .at(q)
                .map_or_else(unknown, figures::milliseconds)
        };
        let _ = writeln!(
            text,
            "| {number} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            purpose_in_words(round.purpose),
            round.variant,
            round.setting,
            figures::count(outcome.completed as f64),
            Metric::RequestsPerSecond.text(outcome.requests_per_second),
            latency(0.5),
            latency(0.99),
            figures::count(outcome.error_count() as f64),
            outcome
                .generator
                .cpu_share
                .map_or_else(unknown, figures::percent),
            round
                .server_cpu_s
                .map_or_else(unknown, |s| format!("{s:.2} s")),
        );
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}

/// The machine and the tools, as a list.
pub fn environment(record: &Record) -> String {
    let mut text = String::new();
    for (name, value) in environment_rows(record) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text
}

/// The machine and the tools, name by name.
pub(crate) fn environment_rows(record: &Record) -> Vec<(String, String)> {
    let here = &record.environment;
    let mut rows = vec![
        ("processor".to_owned(), here.cpu_model.clone()),
        (
            "processors".to_owned(),
            format!(
                "{} usable of {} online",
                here.processors_usable, here.processors_online
            ),
        ),
        (
            "memory".to_owned(),
            format!("{} MiB", figures::count(here.memory_mib as f64)),
        ),
        ("memory regions".to_owned(), here.memory_regions.to_string()),
        ("system".to_owned(), here.system.clone()),
        ("kernel".to_owned(), here.kernel.clone()),
        (
            "CPU quota".to_owned(),
            here.quota
                .map_or_else(|| "none".to_owned(), |quota| format!("{quota} processors")),
        ),
        (
            "frequency governor".to_owned(),
            here.governor
                .clone()
                .unwrap_or_else(|| "not known".to_owned()),
        ),
        (
            "build".to_owned(),
            format!(
                "{} ({})",
                here.build_profile,
                if here.optimised {
                    "optimised"
                } else {
                    "not optimised"
                }
            ),
        ),
    ];
    rows.extend(
        here.tools
            .iter()
            .map(|(tool, version)| (tool.clone(), version.clone())),
    );
    rows.push(("commit".to_owned(), record.commit.in_short()));
    rows.push(("date".to_owned(), format!("{} (UTC)", record.started)));
    rows.push(("seed".to_owned(), record.seed.to_string()));
    rows
}

/// Figures published elsewhere, each with what to know about it.
pub fn published(record: &Record) -> String {
    let mut text =
        String::from("| published elsewhere | figure | to know |\n| --- | ---: | --- |\n");
    for figure in &record.references {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            figure.label,
            figure.value,
            figure.caveat.as_deref().unwrap_or("")
        );
    }
    text
}

/// What the three generators saw of the same load; empty without such rounds.
pub fn agreement(record: &Record) -> String {
    let rounds: Vec<&Round> = record.rounds_for(Purpose::Agreement).collect();
    let Some(own) = rounds
        .iter()
        .find(|round| round.outcome.generator.name == GeneratorKind::Embedded)
    else {
        return String::new();
    };
    let mut text = String::from(
        "| generator | users | requests a second | against embedded | median | against embedded | its processor time |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let off = |metric: Metric, round: &Round| {
        let both = metric.of(&round.outcome).zip(metric.of(&own.outcome));
        both.map_or_else(unknown, |(theirs, ours)| {
            format!("{:+.1} %", (theirs / ours - 1.0) * 100.0)
        })
    };
    for round in &rounds {
        let outcome = &round.outcome;
        let _ = writeln!(
            text,
            "| {} {} | {} | {} | {} | {} | {} | {} |",
            outcome.generator.name,
            outcome.generator.version,
            figures::count(outcome.generator.users.into()),
            Metric::RequestsPerSecond.text(outcome.requests_per_second),
            off(Metric::RequestsPerSecond, round),
            outcome
                .latency
                .at(0.5)
                .map_or_else(unknown, figures::milliseconds),
            off(Metric::P50Ms, round),
            outcome
                .generator
                .cpu_share
                .map_or_else(unknown, figures::percent),
        );
    }
    let _ = write!(text, "\n{}", provenance(record));
    text
}

/// Why a round was run, for a table.
pub(crate) fn purpose_in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Equal => "noise (A/A)",
        Purpose::Effect => "effect (ABBA)",
        Purpose::Bound => "the law's bound",
        Purpose::Agreement => "agreement",
    }
}

/// The ratio with its interval, and the noise beside it.
pub(crate) fn effect_in_words(analysis: &Analysis) -> String {
    let effect = &analysis.effect;
    let (Some(ratio), Some((low, high))) = (effect.ratio, effect.interval) else {
        return "no ratio".to_owned();
    };
    let floor = effect.noise_floor.map_or_else(unknown, figures::percent);
    format!(
        "{} (95 % interval {} to {}; noise floor {floor})",
        figures::gain(ratio),
        figures::ratio(low),
        figures::ratio(high)
    )
}

/// The median of a variant's rounds in the effect's setting.
pub(crate) fn median(record: &Record, metric: Metric, variant: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = record
        .rounds_for(Purpose::Effect)
        .filter(|round| round.variant == variant)
        .map(|round| metric.of(&round.outcome))
        .collect();
    statistics::median_ratio(&values?)
}

fn median_text(record: &Record, metric: Metric, variant: &str) -> String {
    median(record, metric, variant).map_or_else(unknown, |value| metric.text(value))
}

/// A reason begins a sentence of its own in the book.
pub(crate) fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn unknown() -> String {
    "unknown".to_owned()
}

impl Record {
    fn tools_in_words(&self) -> Option<String> {
        let tools = &self.environment.tools;
        let each: Vec<_> = tools
            .iter()
            .map(|(tool, version)| format!("{tool} {version}"))
            .collect();
        (!each.is_empty()).then(|| each.join(", "))
    }
}
