//! Plots beside the chapter's table: its variants against the number of users, and against their cost or the
//! count of the root cause.

use crate::analysis::{
    finding::{is_at_least, median_metric},
    prediction::cpu_of,
};
use crate::measurement::{
    chapter_file::{Matrix, Scenario},
    claim::{LoadMetric, Quantity},
    record::{Purpose, Record, Round},
};
use engine::figures;

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
    let scenarios = matrix.scenarios.iter();
    let mut alike: Vec<(&String, &Scenario)> = scenarios
        .filter_map(|name| Some((name, record.chapter.scenario(name)?)))
        .collect();
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
    let series = matrix.variants.iter().map(|variant| {
        let point = |(name, scenario): &(&String, &Scenario)| {
            let rounds = rounds(record, name, variant);
            Some(Point {
                across: f64::from(scenario.users),
                up: median_metric(metric, &rounds, variant)?,
                is_at_least: is_at_least(&Quantity::Metric(metric), &rounds, variant),
            })
        };
        Marks {
            name: variant.clone(),
            points: alike.iter().filter_map(point).collect(),
        }
    });
    plots::xy(
        title,
        &Direction::new("users", &figures::count),
        &Direction::new(name, &figures::milliseconds),
        &series.collect::<Vec<_>>(),
        true,
    )
}

/// Draws the effect's figure of every round against the CPU time of a request, if the effect is the
/// bystanders' latency. Otherwise draws it against the count of the root cause.
fn by_cause(record: &Record, matrix: &Matrix) -> Option<String> {
    let claims = &record.chapter.claims;
    let (effect, cause) = (claims.effect(), claims.root_cause());
    let is_effects = |name: &&String| *name == effect.scenario();
    let scenario = matrix.scenarios.iter().find(is_effects);
    let scenario = scenario.or(matrix.scenarios.get(matrix.scenarios.len() / 2));
    let (scenario, quantity) = (scenario?, &effect.quantity);
    let is_cost = *quantity == Quantity::Metric(LoadMetric::BystanderP99Ms);
    let value_across = |round: &Round| {
        if is_cost {
            Some(cpu_of(&[round], &round.variant)? * 1e3)
        } else {
            round.value(&cause.quantity)
        }
    };
    let series = matrix.variants.iter().map(|variant| {
        let point = |round: &Round| {
            Some(Point {
                across: value_across(round)?,
                up: round.value(quantity)?,
                is_at_least: round.is_at_least(quantity),
            })
        };
        let rounds = rounds(record, scenario, variant).into_iter();
        Marks {
            name: variant.clone(),
            points: rounds.filter_map(point).collect(),
        }
    });
    let series: Vec<Marks> = series.collect();
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
    let label = |value| cause.unit.text(value);
    let across = Direction::new(cause.label(), &label);
    let up = Direction::new(&matrix.title.to_lowercase(), &up_label);
    plots::xy(&title, &across, &up, &series, false)
}

fn rounds<'a>(record: &'a Record, scenario: &str, variant: &str) -> Vec<&'a Round> {
    record
        .rounds_for(Purpose::Matrix)
        .filter(|round| round.scenario == scenario && round.variant == variant)
        .collect()
}
