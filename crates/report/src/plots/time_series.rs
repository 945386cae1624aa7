//! Anything over time: connections, lateness, requests per second.

use super::{
    PlotError,
    canvas::{self, Axis, Drawn, KeyEntry, Look, Plot},
};
use measurement::figures;

/// One line of a time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is, for the key.
    pub name: String,
    /// Seconds and value.
    pub points: Vec<(f64, f64)>,
}

/// Up to four series over seconds, from 0, with a label for the values.
///
/// # Errors
///
/// When no series has a point that is a number.
pub fn time_series(title: &str, values: &str, series: &[Series]) -> Result<String, PlotError> {
    let drawn: Vec<Drawn> = series
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let line = one.points.iter().copied().filter(|at| is_drawable(*at));
            let line: Vec<_> = line.collect();
            // Marks that a reader without colours can follow, not one a point.
            let every = line.len().div_ceil(12).max(1);
            Drawn {
                marks: line.iter().step_by(every).copied().collect(),
                line,
                ..Drawn::of(Look::nth(index))
            }
        })
        .collect();
    let points = || drawn.iter().flat_map(|drawn| &drawn.line);
    if points().next().is_none() {
        return Err(PlotError::Empty(title.to_owned()));
    }
    let end = points().map(|(s, _)| *s).fold(1e-3, f64::max);
    let low = points().map(|(_, value)| *value).fold(0.0, f64::min);
    let high = points().map(|(_, value)| *value).fold(1e-3, f64::max);
    let key = series.iter().zip(&drawn).map(|(one, drawn)| KeyEntry {
        text: one.name.clone(),
        look: drawn.look,
        hollow: false,
    });
    let plot = Plot {
        title,
        description: format!(
            "{values} over {} s, at most {}.",
            figures::ratio(end),
            figures::ratio(high)
        ),
        key: key.collect(),
        across: Axis::seconds(end),
        has_columns: false,
        up: Axis {
            range: low..high * 1.05,
            name: values,
            label: &|value| figures::count(*value),
            labels: 6,
        },
        drawn,
    };
    plot.svg()
}

fn is_drawable((s, value): (f64, f64)) -> bool {
    s >= 0.0 && canvas::is_drawable(s) && canvas::is_drawable(value)
}
