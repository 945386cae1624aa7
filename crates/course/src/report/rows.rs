//! Claims and measurements of a record, as one list of rows. The terminal, the book's tables and the HTML
//! report each write this list.

use std::fmt::Write as _;

use statistics::figures;

use crate::analysis::{
    finding::{Finding, is_at_least, median_metric},
    verdict::{Analysis, claim_bound},
};
use crate::measurement::{
    chapter_file::Secondary,
    claim::{LoadMetric, PROBLEM, Quantity, Role},
    record::{Purpose, Record, Round},
};

/// One line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Role: `Root cause`, `Effect`, …; empty for a secondary metric.
    pub label: &'static str,
    /// Name of the quantity.
    pub name: String,
    /// The problem's figure; empty if there is none.
    pub problem: String,
    /// The fix's figure; empty if there is none.
    pub fix: String,
    /// The claim, and the comparison of the two figures.
    pub remark: String,
}

impl Row {
    /// Returns `true` for what a law predicts.
    pub(crate) fn is_prediction(&self) -> bool {
        self.label == PREDICTION
    }
}

/// Label of the rows with a law's predictions.
const PREDICTION: &str = "Prediction";

/// Collects the rows of a record: predictions, root causes, secondary metrics, effects with the generator's
/// other metrics, and guardrails.
pub fn rows(record: &Record, analysis: &Analysis) -> Vec<Row> {
    let mut rows = Vec::new();
    for role in [Role::Prediction, Role::RootCause] {
        for finding in analysis.of(role) {
            rows.push(row(record, finding));
        }
    }
    for one in &record.chapter.secondary {
        rows.push(secondary(record, one));
    }
    let mut effects = analysis.of(Role::Effect);
    if let Some(first) = effects.next() {
        rows.push(row(record, first));
    }
    let claimed = &record.chapter.claims.effect().quantity;
    for metric in [
        LoadMetric::RequestsPerSecond,
        LoadMetric::P50Ms,
        LoadMetric::P99Ms,
    ] {
        if *claimed == Quantity::Metric(metric) {
            continue;
        }
        rows.push(Row {
            label: "",
            name: metric.label().to_owned(),
            problem: median_text(record, metric, PROBLEM),
            fix: median_text(record, metric, &record.variant),
            remark: String::new(),
        });
    }
    for finding in effects.chain(analysis.of(Role::Guardrail)) {
        rows.push(row(record, finding));
    }
    rows
}

fn row(record: &Record, finding: &Finding) -> Row {
    let claim = &finding.claim;
    let (label, remark) = match claim.role {
        Role::Prediction => return prediction(record, finding),
        Role::RootCause => ("Root cause", bounds_in_words(finding, &record.variant)),
        Role::Effect if claim.ratio.is_some() => ("Effect", effect_in_words(finding)),
        Role::Effect => ("Effect", bounds_in_words(finding, &record.variant)),
        Role::Guardrail if claim.ratio.is_some() => ("Guardrail", kept_in_words(finding)),
        Role::Guardrail => ("Guardrail", bounds_in_words(finding, &record.variant)),
    };
    let own_scenario = claim.scenario() == record.chapter.claims.effect().scenario();
    let elsewhere = if own_scenario || claim.role == Role::RootCause {
        String::new()
    } else {
        format!(" in the scenario \"{}\"", claim.scenario())
    };
    let text = |variant: &str, value: Option<f64>| match &claim.quantity {
        Quantity::Metric(metric) if claim.role == Role::Effect && own_scenario => {
            median_text(record, *metric, variant)
        }
        quantity => known(value, |value| quantity.text(claim.unit, value)),
    };
    Row {
        label,
        name: format!("{}{elsewhere}", claim.label()),
        problem: text(PROBLEM, finding.problem),
        fix: text(&record.variant, finding.fix),
        remark,
    }
}

/// Makes the row of the law's prediction for a scenario.
fn prediction(record: &Record, finding: &Finding) -> Row {
    let [problem, fix] = [finding.problem, finding.fix].map(|most| match most {
        Some(most) => figures::count(most.round()),
        None => String::new(),
    });
    let load = match record.chapter.scenario(finding.claim.scenario()) {
        Some(scenario) => format!(" ({})", scenario.in_words()),
        None => String::new(),
    };
    let law = record.chapter.law.name();
    let most = if finding.problem.is_some() {
        ", limit of requests per second"
    } else {
        ""
    };
    Row {
        label: PREDICTION,
        name: format!("{law}{most}{load}"),
        problem,
        fix,
        remark: prediction_in_words(record, finding),
    }
}

/// Makes the row of a secondary metric, which is counted in the rounds of the root cause.
fn secondary(record: &Record, one: &Secondary) -> Row {
    let text = |variant: &str| secondary_text(record, one, variant).unwrap_or_else(unknown);
    Row {
        label: "",
        name: one.name.clone(),
        problem: text(PROBLEM),
        fix: text(&record.variant),
        remark: String::new(),
    }
}

/// Formats the median over the rounds in which the root cause was counted; `None` if one of them lacks the
/// figure.
pub(crate) fn secondary_text(record: &Record, one: &Secondary, variant: &str) -> Option<String> {
    let rounds = record.rounds_of(record.chapter.claims.root_cause());
    let own = rounds.into_iter().filter(|round| round.variant == variant);
    Some(one.unit.text(median_reading(own, one)?))
}

/// Returns the median reading of some rounds. A count may be 0, so this is not a median of ratios.
pub(crate) fn median_reading<'a>(
    rounds: impl Iterator<Item = &'a Round>,
    one: &Secondary,
) -> Option<f64> {
    let mut readings = Vec::new();
    for round in rounds {
        readings.push(*round.readings.get(&one.quantity)?);
    }
    readings.sort_unstable_by(f64::total_cmp);
    let last = readings.len().checked_sub(1)?;
    Some(f64::midpoint(
        readings[last / 2],
        readings[last.div_ceil(2)],
    ))
}

/// Formats the law's prediction, and the distance of the measured gain from it.
fn prediction_in_words(record: &Record, finding: &Finding) -> String {
    let Some(ratio) = finding.ratio else {
        return "no prediction".to_owned();
    };
    let predicted = format!("predicts {} times", figures::ratio(ratio));
    let (Some(measured), Some(off)) = (finding.measured, finding.off()) else {
        return predicted;
    };
    let mut text = format!("{predicted}; {}", figures::ratio(measured));
    let is_measured = record.rounds_for(Purpose::Law).next().is_some();
    let mut too_few = "";
    match finding.interval {
        Some((low, high)) if is_measured && finding.claim.within.is_none() && high > 4.0 * low => {
            too_few = "too few probes for an interval; ";
        }
        Some((low, high)) => {
            let (low, high) = (figures::ratio(low), figures::ratio(high));
            let uncertain = if is_measured {
                " with the prediction's uncertainty"
            } else {
                ""
            };
            // Writing to a String cannot fail, here and below.
            let _ = write!(text, " ({low} to {high}{uncertain})");
        }
        None => {}
    }
    let apart = figures::percent(off.abs());
    let _ = write!(text, " was measured, {apart} apart");
    let Some(within) = finding.claim.within else {
        return format!("{text} ({too_few}no claim is made about it)");
    };
    let within = figures::percent(within);
    match finding.holds {
        Some(_) => format!("{text} (claimed: at most {within})"),
        None => format!("{text} (claimed: at most {within}; not judged on a machine this busy)"),
    }
}

/// Formats the ratio with its interval and noise floor, and the claim.
fn effect_in_words(finding: &Finding) -> String {
    let (Some(ratio), Some((low, high))) = (finding.ratio, finding.interval) else {
        return "no ratio".to_owned();
    };
    let mut text = format!(
        "{} ({} {} to {}",
        figures::gain(ratio),
        finding.spread(),
        figures::ratio(low),
        figures::ratio(high)
    );
    if let Some(floor) = finding.noise_floor {
        let _ = write!(text, "; noise floor {}", figures::percent(floor));
    }
    text += ")";
    if let Some(bound) = finding.claim.ratio {
        let limit = bound.limit(finding.users);
        let _ = write!(text, "; claimed: at least {}", figures::ratio(limit));
    }
    text
}

/// Formats the share of the problem's figure that a fix kept.
fn kept_in_words(finding: &Finding) -> String {
    let percent = figures::percent;
    let kept = match finding.ratio {
        Some(ratio) => percent(ratio),
        None => unknown(),
    };
    let mut text = format!("{kept} of the problem's");
    if let Some((low, high)) = finding.interval {
        let (spread, low, high) = (finding.spread(), percent(low), percent(high));
        let _ = write!(text, " ({spread} {low} to {high})");
    }
    if let Some(bound) = finding.claim.ratio {
        let bound = bound.in_words_of(percent(bound.number));
        let _ = write!(text, "; claimed: {bound}");
    }
    text
}

/// Formats the bounds of problem and fix, which is named by its variant.
fn bounds_in_words(finding: &Finding, fix: &str) -> String {
    let claim = &finding.claim;
    let mut bounds = Vec::new();
    for (side, bound) in [(PROBLEM, claim.problem), (fix, claim.solution)] {
        if let Some(bound) = bound {
            bounds.push(format!("{} in the {side}", claim_bound(finding, bound)));
        }
    }
    format!("claimed: {}", bounds.join(", "))
}

/// Formats the median of a variant's rounds in the effect's scenario.
pub(crate) fn median_text(record: &Record, metric: LoadMetric, variant: &str) -> String {
    let rounds = record.effect_rounds();
    let Some(median) = median_metric(metric, &rounds, variant) else {
        return unknown();
    };
    let is_bound = is_at_least(&Quantity::Metric(metric), &rounds, variant);
    metric.bounded_text(median, is_bound)
}

pub(crate) fn unknown() -> String {
    "unknown".to_owned()
}

/// Formats a figure by `text`, or says that it is unknown.
pub(crate) fn known(figure: Option<f64>, text: impl Fn(f64) -> String) -> String {
    match figure {
        Some(figure) => text(figure),
        None => unknown(),
    }
}
