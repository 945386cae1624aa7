//! Plots beside the chapter's table: its variants against the number of users, and against their cost or the
//! count of the root cause.

use statistics::figures;

use crate::analysis::{
    finding::{is_at_least, median_metric},
    prediction::cpu_of,
};
use crate::measurement::{
    chapter_file::{Matrix, Scenario},
    claim::{LoadMetric, Quantity},
    record::{Purpose, Record, Round},
};

use crate::report::plots::{self, Direction, Marks, Point};

const PING: &str = "ping, p99";

type Drawn = (&'static str, Option<String>);

/// Draws both plots; none for a chapter without a table.
pub(super) fn plots(record: &Record) -> Vec<Drawn> {
    let Some(matrix) = &record.chapter.matrix else {
        return Vec::new();
    };
    vec![
        ("users", by_users(record, matrix)),
        ("variants", by_cause(record, matrix)),
    ]
}

/// Draws the 99th percentile against users, over the table's scenarios with the arguments and the share of
/// writes of the first.
fn by_users(record: &Record, matrix: &Matrix) -> Option<String> {
    let title = "99th percentile by number of users";
    let mut alike: Vec<(&String, &Scenario)> = Vec::new();
    for name in &matrix.scenarios {
        if let Some(scenario) = record.chapter.scenario(name) {
            alike.push((name, scenario));
        }
    }
    let &(_, first) = alike.first()?;
    alike.retain(|(_, one)| {
        one.arguments == first.arguments && (one.write_share - first.write_share).abs() < 1e-9
    });
    if alike.iter().all(|(_, one)| one.users == first.users) {
        return None;
    }
    let (metric, name) = if first.bystanders_per_second > 0.0 {
        (LoadMetric::BystanderP99Ms, PING)
    } else {
        (LoadMetric::P99Ms, "latency, p99")
    };
    let mut series = Vec::new();
    for variant in &matrix.variants {
        let mut points = Vec::new();
        for (name, scenario) in &alike {
            let rounds = rounds(record, name, variant);
            if let Some(median) = median_metric(metric, &rounds, variant) {
                points.push(Point {
                    across: f64::from(scenario.users),
                    up: median,
                    is_at_least: is_at_least(&Quantity::Metric(metric), &rounds, variant),
                });
            }
        }
        series.push(Marks {
            name: variant.clone(),
            points,
        });
    }
    plots::xy(
        title,
        &Direction::new("users", &figures::count),
        &Direction::new(name, &figures::milliseconds),
        &series,
        true,
    )
}

/// Draws the effect's figure of every round against the CPU time of a request, if the effect is the
/// bystanders' latency. Otherwise draws it against the count of the root cause.
fn by_cause(record: &Record, matrix: &Matrix) -> Option<String> {
    let claims = &record.chapter.claims;
    let (effect, cause) = (claims.effect(), claims.root_cause());
    let middle = matrix.scenarios.get(matrix.scenarios.len() / 2)?;
    let scenario = if matrix
        .scenarios
        .iter()
        .any(|name| name == effect.scenario())
    {
        effect.scenario()
    } else {
        middle
    };
    let quantity = &effect.quantity;
    let is_cost = *quantity == Quantity::Metric(LoadMetric::BystanderP99Ms);
    let mut series = Vec::new();
    for variant in &matrix.variants {
        let mut points = Vec::new();
        for round in rounds(record, scenario, variant) {
            let across = if is_cost {
                cpu_of(&[round], &round.variant).map(|seconds| seconds * 1e3)
            } else {
                round.value(&cause.quantity)
            };
            if let (Some(across), Some(up)) = (across, round.value(quantity)) {
                points.push(Point {
                    across,
                    up,
                    is_at_least: round.is_at_least(quantity),
                });
            }
        }
        series.push(Marks {
            name: variant.clone(),
            points,
        });
    }
    let users = figures::things(record.chapter.users(scenario).into(), "user");
    let up_label = |value| quantity.text(effect.unit, value);
    if is_cost {
        let title = format!("Cost against starvation, {users}");
        let across = Direction::new("CPU time a request", &figures::milliseconds);
        return plots::xy(
            &title,
            &across,
            &Direction::new(PING, &up_label),
            &series,
            false,
        );
    }
    let title = format!("Cause against effect, {users}");
    let up = Direction::new(&matrix.title.to_lowercase(), &up_label);
    plots::xy(
        &title,
        &Direction::new(cause.label(), &|value| cause.unit.text(value)),
        &up,
        &series,
        false,
    )
}

fn rounds<'a>(record: &'a Record, scenario: &str, variant: &str) -> Vec<&'a Round> {
    record
        .rounds_for(Purpose::Matrix)
        .filter(|round| round.scenario == scenario && round.variant == variant)
        .collect()
}
