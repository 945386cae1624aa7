//! Every answer by its moment and its latency: where many lie, the colour is full.

use std::collections::BTreeMap;

use super::{
    PlotError,
    canvas::{self, Axis, Cell, Drawn, KeyEntry, Look, Plot},
    scale::{self, Scale, is_apart, span},
    time_series::Series,
};
use measurement::figures;

/// Cells across.
const COLUMNS: f64 = 80.0;
/// Cells up, where latencies are not told in factors.
const ROWS: f64 = 40.0;
/// From the lower edge of a cell to its upper one, where they are.
const FACTOR: f64 = 1.25;

/// Answers of up to four series, each `(seconds, milliseconds)`.
///
/// # Errors
///
/// When no series has a point that is a number.
pub fn heat_map(title: &str, series: &[Series]) -> Result<String, PlotError> {
    let is_drawable = |(s, ms): &(f64, f64)| {
        canvas::is_drawable(*s) && *s >= 0.0 && canvas::is_drawable(*ms) && *ms > 0.0
    };
    let points = || series.iter().flat_map(|one| &one.points);
    let points = || points().copied().filter(is_drawable);
    let Some((low, high)) = span(points().map(|(_, ms)| ms)) else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let end = points().map(|(s, _)| s).fold(1e-3, f64::max);
    let width = end / COLUMNS;
    let is_log = is_apart((low, high));
    let row_of = |ms: f64| {
        if is_log {
            ms.log(FACTOR)
        } else {
            ms / high * ROWS
        }
    };
    let edge = |row: f64| {
        if is_log {
            FACTOR.powf(row)
        } else {
            row / ROWS * high
        }
    };
    let drawn: Vec<Drawn> = series
        .iter()
        .enumerate()
        .map(|(index, one)| {
            // Column and row are whole numbers, whose bits can be ordered.
            let mut counts: BTreeMap<[u64; 2], u32> = BTreeMap::new();
            for (s, ms) in one.points.iter().copied().filter(is_drawable) {
                // The last answer belongs into the last column.
                let column = (s / width).min(COLUMNS - 1.0).floor();
                let row = row_of(ms).floor();
                *counts.entry([column, row].map(f64::to_bits)).or_default() += 1;
            }
            let most = counts.values().copied().max().unwrap_or(1);
            let cells = counts.iter().map(|(place, &count)| {
                let [column, row] = place.map(f64::from_bits);
                Cell {
                    across: column * width..(column + 1.0) * width,
                    up: edge(row)..edge(row + 1.0),
                    // One answer in a cell is still to be seen.
                    share: (20.0 + (80.0 * f64::from(count) / f64::from(most)).round()) / 100.0,
                }
            });
            Drawn {
                cells: cells.collect(),
                ..Drawn::of(Look::nth(index))
            }
        })
        .collect();
    let key = series.iter().zip(&drawn).map(|(one, drawn)| KeyEntry {
        text: one.name.clone(),
        look: drawn.look,
        hollow: false,
    });
    let told_in = if is_log { " (log scale)" } else { "" };
    let plot = Plot {
        title,
        description: format!(
            "Latencies over {} s, from {} to {}.",
            figures::ratio(end),
            figures::milliseconds(low),
            figures::milliseconds(high)
        ),
        key: key.collect(),
        across: Axis::seconds(end),
        has_columns: false,
        up: Axis {
            range: Scale::over((low, high), Vec::new()),
            name: &format!("latency{told_in}"),
            label: &|ms| scale::text(*ms, &figures::milliseconds),
            labels: 6,
        },
        drawn,
    };
    plot.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64)]) -> Series {
        Series {
            name: "problem".to_owned(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn what_many_took_is_drawn_fuller() {
        let mut points = vec![(0.1, 200.0); 9];
        points.extend([(0.1, 2.0), (6.0, 2.0), (3.0, f64::NAN), (3.0, 0.0)]);
        let svg = heat_map("Pings", &[series(&points)]).unwrap();
        let filled = |opacity: &str| {
            let fill = format!("opacity=\"{opacity}\" fill=\"#D55E00\"");
            svg.matches(&fill).count()
        };
        // One of the full ones is the mark of the key.
        assert_eq!((filled("1"), filled("0.29")), (2, 2), "{svg}");
        assert!(svg.contains("from 2.00 ms to 200 ms"), "{svg}");
    }

    #[test]
    fn without_answers_there_is_no_plot() {
        let nothing = heat_map("Pings", &[series(&[(1.0, f64::INFINITY)])]);
        assert_eq!(nothing, Err(PlotError::Empty("Pings".to_owned())));
    }
}
