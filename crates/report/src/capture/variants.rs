//! What the chapter's table does not show: its variants against users, and against their cost or the
//! root cause, every round a mark.

use analysis::prediction::cpu_of;
use measurement::{
    chapter_file::{Matrix, Scenario},
    claim::{Metric, Quantity, Unit},
    figures,
    record::{Purpose, Record, Round},
};

use crate::plots::{self, Direction, Marks, PlotError, Point};

type Drawn = (&'static str, Result<String, PlotError>);

/// Both plots; none for a chapter without a table.
pub(super) fn plots(record: &Record) -> Vec<Drawn> {
    let Some(matrix) = &record.chapter.matrix else {
        return Vec::new();
    };
    vec![
        ("users", by_users(record, matrix)),
        ("variants", by_cause(record, matrix)),
    ]
}

/// The 99th percentile against users, over the scenarios of the table that are the same service.
fn by_users(record: &Record, matrix: &Matrix) -> Result<String, PlotError> {
    let title = "99th percentile by number of users";
    let scenario = |name: &String| Some((name.clone(), record.chapter.scenario(name)?));
    let scenarios: Vec<(String, &Scenario)> =
        matrix.scenarios.iter().filter_map(scenario).collect();
    let Some((_, first)) = scenarios.first() else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let alike: Vec<&(String, &Scenario)> = scenarios
        .iter()
        .filter(|(_, one)| one.arguments == first.arguments)
        .filter(|(_, one)| (one.write_share - first.write_share).abs() < 1e-9)
        .collect();
    let users = |scenario: &Scenario| scenario.users;
    if alike.iter().all(|(_, one)| users(one) == users(first)) {
        return Err(PlotError::Empty(title.to_owned()));
    }
    let has_bystander = first.bystanders_per_second > 0.0;
    let metric = if has_bystander {
        Metric::BystanderP99Ms
    } else {
        Metric::P99Ms
    };
    let series = matrix.variants.iter().map(|variant| Marks {
        name: variant.clone(),
        points: alike
            .iter()
            .filter_map(|(name, scenario)| {
                let rounds = rounds(record, name, variant);
                let ms = analysis::finding::median_metric(metric, &rounds, variant)?;
                Some(Point {
                    across: f64::from(users(scenario)),
                    up: ms,
                    is_at_least: rounds
                        .iter()
                        .any(|round| metric.is_at_least(&round.outcome)),
                })
            })
            .collect(),
    });
    plots::xy(
        title,
        &Direction {
            name: "users".to_owned(),
            label: &figures::count,
            is_told: true,
        },
        &Direction {
            name: if has_bystander {
                "ping, p99".to_owned()
            } else {
                "latency, p99".to_owned()
            },
            label: &figures::milliseconds,
            is_told: true,
        },
        &series.collect::<Vec<_>>(),
        true,
    )
}

/// The effect's figure against what a request costs, where bystanders starve; elsewhere against the
/// count of the root cause.
fn by_cause(record: &Record, matrix: &Matrix) -> Result<String, PlotError> {
    let claims = &record.chapter.claims;
    let (effect, cause) = (claims.effect(), claims.root_cause());
    let is_effects = |name: &&String| *name == effect.scenario();
    let scenario = matrix.scenarios.iter().find(is_effects);
    let scenario = scenario.or(matrix.scenarios.get(matrix.scenarios.len() / 2));
    let (Some(scenario), Some(quantity)) = (scenario, &effect.quantity) else {
        return Err(PlotError::Empty(matrix.title.clone()));
    };
    let is_cost = *quantity == Quantity::Metric(Metric::BystanderP99Ms);
    let cost = |round: &Round| {
        let seconds = cpu_of(&[round], &round.variant)?;
        Some(seconds * 1e3)
    };
    let count = |round: &Round| round.value(cause.quantity.as_ref()?);
    let across = |round: &Round| if is_cost { cost(round) } else { count(round) };
    let series: Vec<Marks> = matrix
        .variants
        .iter()
        .map(|variant| Marks {
            name: variant.clone(),
            points: rounds(record, scenario, variant)
                .into_iter()
                .filter_map(|round| {
                    Some(Point {
                        across: across(round)?,
                        up: round.value(quantity)?,
                        is_at_least: is_at_least(quantity, round),
                    })
                })
                .collect(),
        })
        .collect();
    let name = if is_cost {
        "CPU time a request"
    } else {
        cause.label()
    };
    let unit = if is_cost { Unit::Count } else { cause.unit };
    let label = |value: f64| {
        if is_cost {
            figures::milliseconds(value)
        } else {
            unit.text(value)
        }
    };
    let users = figures::things(record.chapter.users(scenario).into(), "user");
    let what = if is_cost {
        "Cost against starvation"
    } else {
        "Cause against effect"
    };
    plots::xy(
        &format!("{what}, {users}"),
        &Direction {
            name: name.to_owned(),
            label: &label,
            is_told: true,
        },
        &Direction {
            name: if is_cost {
                "ping, p99".to_owned()
            } else {
                matrix.title.to_lowercase()
            },
            label: &|value| quantity.text(effect.unit, value),
            is_told: true,
        },
        &series,
        false,
    )
}

fn is_at_least(quantity: &Quantity, round: &Round) -> bool {
    match quantity {
        Quantity::Metric(metric) => metric.is_at_least(&round.outcome),
        Quantity::WorkShare | Quantity::BystanderShare | Quantity::Counter(_) => false,
    }
}

fn rounds<'a>(record: &'a Record, scenario: &str, variant: &str) -> Vec<&'a Round> {
    record
        .rounds_for(Purpose::Matrix)
        .filter(|round| round.scenario == scenario && round.variant == variant)
        .collect()
}
