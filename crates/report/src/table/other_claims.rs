//! What a chapter claims beside mechanism and effect, as rows for a table.

use super::unknown;
use analysis::{
    price::PriceFinding,
    utilisation::UtilisedFinding,
    verdict::{Analysis, BoundFinding, PointFinding},
};
use measurement::{claim::Metric, figures, record::Record};

/// A row: what it is about, both variants, and what was claimed.
pub(crate) struct OtherClaim {
    pub(crate) name: String,
    pub(crate) problem: String,
    pub(crate) solution: String,
    pub(crate) remark: String,
}

/// All of them, in the order in which they are judged.
pub(crate) fn other_claims(record: &Record, analysis: &Analysis) -> Vec<OtherClaim> {
    let bound = analysis.bound.iter().map(|bound| near(record, bound));
    let points = analysis.points.iter().map(|point| {
        let metric = analysis.effect.metric;
        let figure = |value: Option<f64>| value.map_or_else(unknown, |value| metric.text(value));
        OtherClaim {
            name: format!("{} in the setting \"{}\"", metric.label(), point.setting),
            problem: figure(point.problem),
            solution: figure(point.solution),
            remark: point_in_words(point),
        }
    });
    bound
        .chain(analysis.utilised.iter().flat_map(utilised))
        .chain(analysis.price.iter().flat_map(price))
        .chain(points)
        .collect()
}

fn near(record: &Record, bound: &BoundFinding) -> OtherClaim {
    let chapter = &record.chapter;
    let setting = chapter.setting(&bound.setting).unwrap_or(&chapter.load);
    let rate = |value: f64| Metric::RequestsPerSecond.text(value);
    OtherClaim {
        name: format!(
            "requests a second with {} and {} s pause",
            figures::things(setting.users.into(), "user"),
            figures::count(setting.think_s)
        ),
        problem: bound.problem.map_or_else(unknown, rate),
        solution: rate(bound.measured),
        remark: format!(
            "{} of the law's {}",
            figures::percent(bound.share),
            figures::count(bound.bound.round())
        ),
    }
}

fn utilised(finding: &UtilisedFinding) -> [OtherClaim; 2] {
    [
        OtherClaim {
            name: "of the processor time given, spent on the work".to_owned(),
            problem: share(finding.problem),
            solution: share(finding.solution),
            remark: String::new(),
        },
        OtherClaim {
            name: "of the utilisation law's bound for the processor time given".to_owned(),
            problem: String::new(),
            solution: share(finding.share),
            remark: claimed_share(finding.claimed, finding.interval),
        },
    ]
}

fn price(finding: &PriceFinding) -> impl Iterator<Item = OtherClaim> {
    let kept = OtherClaim {
        name: "of the problem's requests a second".to_owned(),
        problem: String::new(),
        solution: share(finding.throughput),
        remark: claimed_share(finding.claimed, finding.interval),
    };
    let reading = |value: Option<f64>| value.map_or_else(unknown, figures::count);
    let limits = finding.limits.iter().map(move |one| OtherClaim {
        name: one.limit.name.clone(),
        problem: reading(one.problem),
        solution: reading(one.solution),
        remark: format!("claimed: at most {}", figures::count(one.limit.at_most)),
    });
    std::iter::once(kept).chain(limits)
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(unknown, figures::percent)
}

fn claimed_share(claimed: f64, interval: Option<(f64, f64)>) -> String {
    let interval = figures::interval_of_share(interval);
    format!("claimed: at least {}{interval}", figures::percent(claimed))
}

/// The gain at a point beside what the law predicts for it.
pub(crate) fn point_in_words(point: &PointFinding) -> String {
    let measured = point
        .ratio
        .map_or_else(|| "no ratio".to_owned(), figures::gain);
    let predicted = point.prediction.as_ref().map_or_else(String::new, |law| {
        format!(", predicted {}", figures::ratio(law.ratio))
    });
    let claimed = point.claimed.map_or_else(String::new, |claimed| {
        format!(", claimed {}", figures::ratio(claimed))
    });
    format!("{measured}{predicted}{claimed}")
}
