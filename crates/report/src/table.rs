//! A capture in Markdown, for the book to include: no measured number is typed by hand.

mod beside;
mod environment;
mod matrix;
mod other_claims;
mod rounds;
mod values;
mod yardsticks;

use std::fmt::Write as _;

pub(crate) use self::{
    beside::beside_text,
    environment::environment_rows,
    matrix::Cells,
    matrix::cells as matrix_cells,
    other_claims::{other_claims, point_in_words},
    rounds::purpose_in_words,
};
pub use self::{
    environment::environment,
    matrix::matrix,
    rounds::{agreement, rounds},
    values::values,
    yardsticks::yardsticks,
};
use analysis::verdict::{Analysis, limit_in_words, median_of};
use measurement::{
    claim::{Metric, PROBLEM, SOLUTION},
    figures,
    record::{Purpose, Record, Round},
};

/// Where the figures come from, in one line below each table.
pub fn provenance(record: &Record) -> String {
    let version = tools_in_words(record).map_or_else(String::new, |tools| format!("; {tools}"));
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
    let bound =
        |value: Option<f64>| value.map_or_else(String::new, |value| figures::count(value.round()));
    let law = chapter.law.name();
    match &analysis.prediction {
        Some(prediction) if prediction.problem.is_some() => row(
            &format!("{law}: at most, requests a second ({users}, {pause})"),
            &bound(prediction.problem),
            &bound(prediction.solution),
            &law_in_words(analysis),
        ),
        _ => row(
            &format!("{law} ({users}, {pause})"),
            "",
            "",
            &law_in_words(analysis),
        ),
    }
    let reading = |value: Option<f64>| value.map_or_else(unknown, figures::count);
    let claim = &chapter.mechanism;
    row(
        &mechanism.name,
        &reading(mechanism.problem),
        &reading(mechanism.solution),
        &format!(
            "claimed: {}, {}",
            limit_in_words(claim.problem, chapter.mechanism_users()),
            limit_in_words(claim.solution, chapter.mechanism_users())
        ),
    );
    for beside in &chapter.beside {
        let text = |variant| beside_text(record, beside, variant).unwrap_or_else(unknown);
        row(&beside.name, &text(PROBLEM), &text(SOLUTION), "");
    }
    row(
        effect.metric.label(),
        &median_text(record, effect.metric, PROBLEM),
        &median_text(record, effect.metric, SOLUTION),
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
    for claim in other_claims(record, analysis) {
        row(&claim.name, &claim.problem, &claim.solution, &claim.remark);
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

/// What the law predicts, and how far the measured gain is from it where the chapter claims that.
pub(crate) fn law_in_words(analysis: &Analysis) -> String {
    let Some(prediction) = &analysis.prediction else {
        return "no prediction".to_owned();
    };
    let predicted = format!("predicts {} times", figures::ratio(prediction.ratio));
    match &analysis.law {
        Some(law) if law.is_exceeded() => format!(
            "{predicted} at least; {} was measured, {} more: what is left became faster, too",
            figures::ratio(law.measured),
            figures::percent(law.off)
        ),
        Some(law) if law.within.is_some() => format!(
            "{predicted}; {} was measured, {} apart",
            figures::ratio(law.measured),
            figures::percent(law.off.abs())
        ),
        _ => predicted,
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

/// The median of a variant's rounds in the effect's setting, for people.
pub(crate) fn median_text(record: &Record, metric: Metric, variant: &str) -> String {
    let rounds: Vec<&Round> = record
        .rounds_for(Purpose::Effect)
        .filter(|round| round.variant == variant)
        .collect();
    let Some(median) = median_of(metric, &rounds, variant) else {
        return unknown();
    };
    let over = if rounds
        .iter()
        .any(|round| metric.is_at_least(&round.outcome))
    {
        "over "
    } else {
        ""
    };
    format!("{over}{}", metric.text(median))
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

fn tools_in_words(record: &Record) -> Option<String> {
    let tools = &record.environment.tools;
    let each: Vec<_> = tools
        .iter()
        .map(|(tool, version)| format!("{tool} {version}"))
        .collect();
    (!each.is_empty()).then(|| each.join(", "))
}
