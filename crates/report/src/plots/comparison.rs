//! One metric of two builds, round by round.

use super::{
    PlotError,
    canvas::{self, Axis, Drawn, KeyEntry, Look, Plot},
};
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::comparison::{Figures, Metric, Round};
use measurement::figures;

/// What a server of a round is called, where its figures are, and whether it is the base's twin.
type Server = (&'static str, fn(&Round) -> &Figures, &'static str, bool);

const SERVERS: [Server; 3] = [
    ("base", |round| &round.base, PROBLEM, false),
    ("change", |round| &round.change, SOLUTION, false),
    ("base again", |round| &round.again, PROBLEM, true),
];

/// The figures of base, change and, hollow, the base's twin.
///
/// # Errors
///
/// When no round has one.
pub fn metric_of_rounds(metric: &Metric, rounds: &[Round]) -> Result<String, PlotError> {
    let drawn: Vec<Drawn> = SERVERS
        .iter()
        .map(|(_, figures, look, hollow)| Drawn {
            marks: (1_u32..)
                .zip(rounds)
                .filter_map(|(number, round)| {
                    let value = figures(round).get(&metric.key)?;
                    canvas::is_drawable(*value).then_some((f64::from(number), *value))
                })
                .collect(),
            hollow: *hollow,
            ..Drawn::of(Look::of_variant(look))
        })
        .collect();
    let values = || {
        drawn
            .iter()
            .flat_map(|drawn| &drawn.marks)
            .map(|(_, value)| *value)
    };
    let high = values().fold(0.0, f64::max);
    let low = values().fold(f64::INFINITY, f64::min);
    if high <= 0.0 {
        return Err(PlotError::Empty(metric.label.clone()));
    }
    let end = rounds.len() as f64;
    let plot = Plot {
        title: &metric.label,
        description: format!(
            "{} of {} rounds, from {} to {}.",
            metric.label,
            rounds.len(),
            figures::count(low),
            figures::count(high)
        ),
        key: SERVERS
            .iter()
            .map(|(name, _, look, hollow)| KeyEntry {
                text: (*name).to_owned(),
                look: Look::of_variant(look),
                hollow: *hollow,
            })
            .collect(),
        across: Axis {
            range: 0.5..end + 0.5,
            name: "round, in the order in which they ran",
            label: &|x| {
                if (x - x.round()).abs() < 1e-6 {
                    figures::count(*x)
                } else {
                    String::new()
                }
            },
            labels: if end > 14.0 { 10 } else { 20 },
        },
        has_columns: false,
        up: Axis {
            range: 0.0..high * 1.1,
            name: &metric.label,
            label: &|value| figures::count(*value),
            labels: 6,
        },
        drawn,
    };
    plot.svg()
}
