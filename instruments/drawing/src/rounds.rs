//! A plot of one figure over all rounds.

use statistics::figures;
use statistics::metric::{Figures, Metric, Triplet, Unit};

use crate::canvas::{Axis, Drawn, Look, Plot, is_drawable};
use crate::scale::{Scale, span};
use crate::table::sentence_case;

/// Plots one metric of two builds: the figures of base, change and, with hollow marks, the second
/// server of the base. `None` if no round has a figure.
pub fn metric_of_rounds(metric: &Metric, rounds: &[Triplet]) -> Option<String> {
    type Server = (&'static str, fn(&Triplet) -> &Figures, usize, bool);
    let servers: [Server; 3] = [
        ("base", |round| &round.base, 0, false),
        ("change", |round| &round.change, 1, false),
        ("base again", |round| &round.again, 0, true),
    ];
    // The axis shows round numbers of these units.
    let (per_unit, unit) = match metric.unit {
        Unit::Bytes => (1.0 / f64::from(1 << 20), ", in MiB"),
        Unit::Seconds => (1e3, ", in ms"),
        Unit::Ms => (1.0, ", in ms"),
        Unit::PerSecond | Unit::Count => (1.0, ""),
    };
    let drawn = servers.map(|(name, figures, look, hollow)| {
        let mut marks = Vec::new();
        for (number, round) in (1_u32..).zip(rounds) {
            if let Some(value) = figures(round).get(&metric.key) {
                marks.push((f64::from(number), value * per_unit));
            }
        }
        Drawn {
            marks,
            hollow,
            ..Drawn::of(name, Look::nth(look))
        }
    });
    let name = format!("{}{unit}", metric.label);
    by_round(&metric.label, &name, drawn.into())
}

/// Plots a mark for each round, in the order in which they ran. `None` if there is nothing to draw.
pub fn by_round(title: &str, name: &str, mut drawn: Vec<Drawn>) -> Option<String> {
    for one in &mut drawn {
        one.marks.retain(|(_, value)| is_drawable(*value));
    }
    let marks = || drawn.iter().flat_map(|drawn| &drawn.marks);
    let (low, high) = span(marks().map(|(_, value)| *value))?;
    let mut numbers: Vec<f64> = marks().map(|(number, _)| *number).collect();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.dedup();
    let last = numbers.last().copied().unwrap_or(1.0);
    let plot = Plot {
        title,
        description: format!(
            "{} of {} rounds, from {} to {}.",
            sentence_case(name),
            numbers.len(),
            figures::ratio(low),
            figures::ratio(high)
        ),
        across: Axis {
            scale: Scale::linear(0.5..last + 0.5),
            name: "round, in the order in which they ran".to_owned(),
            label: &|x| {
                if (x - x.round()).abs() < 1e-6 {
                    figures::count(x)
                } else {
                    String::new()
                }
            },
            labels: if last > 14.0 { 10 } else { 20 },
        },
        has_columns: false,
        up: Axis::values(name, (low, high), &figures::count),
        drawn,
    };
    plot.svg()
}
