//! Plots as SVG. Equal figures give equal bytes. Plots are legible on light and dark pages, on a phone, and
//! to readers who cannot tell colours apart. A plot without anything to show is `None`.

use std::collections::BTreeMap;

use crate::measurement::record::{Purpose, Round};
use engine::outcome::Latency;

use drawing::{
    canvas::{Axis, Cell, Drawn, Look, Plot, is_drawable},
    percentiles::{self, Line},
    rounds::by_round,
    scale::{self, Scale, is_apart, span},
};
use statistics::figures;

/// One direction of a plot of anything against anything.
pub struct Direction<'a> {
    /// Its name.
    pub name: String,
    /// Formats a value as text.
    pub label: &'a dyn Fn(f64) -> String,
    /// Scale of its axis.
    scale: AxisScale,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AxisScale {
    /// Logarithmic if the values are far apart.
    OfValues,
    /// Linear from zero, for values whose difference is what the plot shows.
    Linear,
}

impl<'a> Direction<'a> {
    /// Makes the direction `name`, whose values `label` formats.
    pub fn new(name: &str, label: &'a dyn Fn(f64) -> String) -> Self {
        Self {
            name: name.to_owned(),
            label,
            scale: AxisScale::OfValues,
        }
    }

    /// Makes the direction's axis linear from zero, however far apart the values are.
    #[must_use]
    pub fn linear(self) -> Self {
        Self {
            scale: AxisScale::Linear,
            ..self
        }
    }

    fn axis(&self, span: (f64, f64)) -> Axis<'a> {
        match self.scale {
            AxisScale::OfValues => Axis::values(&self.name, span, self.label),
            AxisScale::Linear => Axis {
                scale: Scale::linear(0.0..span.1 * 1.05),
                name: self.name.clone(),
                label: self.label,
                labels: 6,
            },
        }
    }

    /// Describes the values between two: `users: 1 to 3,000`.
    fn range(&self, (low, high): (f64, f64)) -> String {
        let [low, high] = [low, high].map(|value| scale::text(value, self.label));
        format!("{}: {low} to {high}", self.name)
    }
}

/// Returns whether a value of [`xy`] has a place on its axis.
fn is_shown(value: f64) -> bool {
    is_drawable(value) && value >= 0.0
}

/// Marks of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks {
    /// Name of the marks, for the key.
    pub name: String,
    /// Places of the marks.
    pub points: Vec<Point>,
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its value across.
    pub across: f64,
    /// Its value up.
    pub up: f64,
    /// `true` if the value up is a lower bound, such as a latency while the slowest requests were still
    /// running. Its mark is hollow.
    pub is_at_least: bool,
}

impl Point {
    /// Makes a mark whose value is known.
    pub fn at(across: f64, up: f64) -> Self {
        Self {
            across,
            up,
            is_at_least: false,
        }
    }
}

/// One line of a time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the line, for the key.
    pub name: String,
    /// Seconds and value.
    pub points: Vec<(f64, f64)>,
}

/// Draws anything against anything: up to eight series of marks. `is_joined` draws a line through each.
/// `None` if no series has a point that both directions can show.
pub fn xy(
    title: &str,
    across: &Direction<'_>,
    up: &Direction<'_>,
    series: &[Marks],
    is_joined: bool,
) -> Option<String> {
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let mut drawn = Vec::new();
    let mut points = Vec::new();
    for (one, (name, look)) in series.iter().zip(Look::of_each(&names)) {
        let (mut line, mut full, mut hollow) = (Vec::new(), Vec::new(), Vec::new());
        for point in &one.points {
            if !is_shown(point.across) || !is_shown(point.up) {
                continue;
            }
            let place = (point.across, point.up);
            line.push(place);
            if point.is_at_least {
                hollow.push(place);
            } else {
                full.push(place);
            }
        }
        points.extend_from_slice(&line);
        let name = if line.is_empty() { "" } else { name };
        drawn.push(Drawn {
            line: if is_joined { line } else { Vec::new() },
            marks: full,
            ..Drawn::of(name, look)
        });
        drawn.push(Drawn {
            marks: hollow,
            hollow: true,
            ..Drawn::of("", look)
        });
    }
    let wide = span(points.iter().map(|(x, _)| *x))?;
    let high = span(points.iter().map(|(_, y)| *y)).unwrap_or(wide);
    if drawn.iter().any(|one| one.hollow && !one.marks.is_empty()) {
        drawn.push(Drawn::at_least());
    }
    let mut places: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let mut axis = across.axis(wide);
    axis.labels = 5;
    if across.scale == AxisScale::OfValues {
        // Lines go through a few places, and the axis names these. A logarithmic axis has room for powers of ten only.
        axis.scale = match wide {
            (low, high) if !is_joined && is_apart(wide) => Scale::log(low / 1.5..high * 1.5),
            _ => Scale::over(wide, if is_joined { places } else { Vec::new() }),
        };
    }
    let plot = Plot {
        title,
        description: format!(
            "{}; {}, for {}.",
            across.range(wide),
            up.range(high),
            names.join(", ")
        ),
        across: axis,
        has_columns: true,
        up: up.axis(high),
        drawn,
    };
    plot.svg()
}

/// Requests whose latencies are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Users of the load.
    Users,
    /// Bystanders. Their latency counts from the moment at which a request was due.
    Bystanders,
}

impl Of {
    /// Returns their latencies in a round and their number of answers.
    fn latencies(self, round: &Round) -> Option<(&Latency, u64)> {
        let outcome = &round.outcome;
        match self {
            Self::Users => Some((&outcome.latency, outcome.completed)),
            Self::Bystanders => {
                let bystander = outcome.bystander.as_ref()?;
                Some((&bystander.latency, bystander.completed))
            }
        }
    }
}

/// Draws latency against percentile, with a line for each round. `None` if no round has answers.
pub fn by_percentile(title: &str, rounds: &[&Round], of: Of) -> Option<String> {
    let looks = looks(rounds.iter().copied());
    let key: Vec<(&str, Look)> = looks.iter().map(|(name, look)| (*name, *look)).collect();
    let mut lines = Vec::new();
    for round in rounds {
        if let Some((latency, count)) = of.latencies(round) {
            lines.push(Line {
                name: "",
                look: looks[round.variant.as_str()],
                quantiles: &latency.quantiles,
                lower_bound_from: latency.lower_bound_from,
                count,
            });
        }
    }
    percentiles::by_percentile(title, &key, &lines, "round")
}

/// Draws the requests per second of rounds in one scenario: problem and fix filled, the fix again hollow.
/// Leaves out rounds with other purposes. `None` if no round has answers.
pub fn throughput_of_rounds(title: &str, rounds: &[Round], scenario: &str) -> Option<String> {
    let mut shown = Vec::new();
    for (place, round) in rounds.iter().enumerate() {
        let is_compared = matches!(round.purpose, Purpose::Equal | Purpose::Claim);
        if round.scenario == scenario && is_compared && round.outcome.requests_per_second > 0.0 {
            // Numbered as everywhere else: by the place among all rounds.
            shown.push((place + 1, round));
        }
    }
    let looks = looks(shown.iter().map(|(_, round)| *round));
    let mut drawn = Vec::new();
    for (purpose, more) in [
        (Purpose::Claim, ""),
        (Purpose::Equal, ", equal servers (A/A)"),
    ] {
        for (name, look) in &looks {
            let mut rounds = shown.iter();
            if rounds.any(|(_, round)| round.purpose == purpose && round.variant == *name) {
                drawn.push(Drawn {
                    hollow: purpose == Purpose::Equal,
                    ..Drawn::of(&format!("{name}{more}"), *look)
                });
            }
        }
    }
    for (number, round) in shown {
        drawn.push(Drawn {
            marks: vec![(number as f64, round.outcome.requests_per_second)],
            hollow: round.purpose == Purpose::Equal,
            ..Drawn::of("", looks[round.variant.as_str()])
        });
    }
    by_round(title, "requests per second", drawn)
}

/// Draws up to four series over seconds, from 0; `values` labels the values. `None` if no series has a point
/// that is a number.
pub fn time_series(title: &str, values: &str, series: &[Series]) -> Option<String> {
    time_series_up_to(0.0, title, values, series)
}

/// Draws [`time_series`] with an axis that reaches `most` at least, so that plots can be compared.
pub fn time_series_up_to(
    most: f64,
    title: &str,
    values: &str,
    series: &[Series],
) -> Option<String> {
    let mut drawn = Vec::new();
    let mut shown = Vec::new();
    let mut end = 1e-3_f64;
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    for (one, (name, look)) in series.iter().zip(Look::of_each(&names)) {
        let mut line = Vec::new();
        for &(s, value) in &one.points {
            if s >= 0.0 && is_drawable(s) && is_drawable(value) {
                line.push((s, value));
                shown.push(value);
                end = end.max(s);
            }
        }
        // Draw a few marks, which tell lines apart without colours, rather than one for each point.
        let every = line.len().div_ceil(12).max(1);
        drawn.push(Drawn {
            marks: line.iter().step_by(every).copied().collect(),
            line,
            ..Drawn::of(name, look)
        });
    }
    let (low, high) = span(shown.into_iter())?;
    let (low, high) = (low.min(0.0), high.max(most).max(1e-3));
    let plot = Plot {
        title,
        description: format!(
            "{values} over {} s, at most {}.",
            figures::ratio(end),
            figures::ratio(high)
        ),
        across: Axis::seconds(end),
        has_columns: false,
        up: Axis {
            scale: Scale::linear(low..high * 1.05),
            ..Axis::values(values, (0.0, high), &figures::count)
        },
        drawn,
    };
    plot.svg()
}

/// Number of cells across in a heat map.
const COLUMNS: f64 = 80.0;
/// Number of cells up in a heat map with a linear axis.
const ROWS: f64 = 40.0;
/// Ratio of a cell's upper edge to its lower one on a logarithmic axis.
const FACTOR: f64 = 1.25;

/// Draws every answer by its moment and its latency, for up to four series of `(seconds, milliseconds)`. The
/// more answers lie in a cell, the fuller its colour. `None` if no series has a point that is a number.
pub fn heat_map(title: &str, series: &[Series]) -> Option<String> {
    let mut shown = Vec::new();
    let mut all_ms = Vec::new();
    let mut end = 1e-3_f64;
    for one in series {
        let mut points = one.points.clone();
        points.retain(|&(s, ms)| is_shown(s) && is_shown(ms) && ms > 0.0);
        for (s, ms) in &points {
            end = end.max(*s);
            all_ms.push(*ms);
        }
        shown.push(points);
    }
    let (low, high) = span(all_ms.into_iter())?;
    let width = end / COLUMNS;
    let rows = Rows {
        is_log: is_apart((low, high)),
        high,
    };
    let mut drawn = Vec::new();
    for (index, points) in shown.into_iter().enumerate() {
        // Column and row are whole numbers, whose bits can be ordered.
        let mut counts: BTreeMap<[u64; 2], u32> = BTreeMap::new();
        for (s, ms) in points {
            // The last answer belongs to the last column.
            let column = (s / width).min(COLUMNS - 1.0).floor();
            let row = rows.of(ms).floor();
            *counts.entry([column, row].map(f64::to_bits)).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(1);
        let mut cells = Vec::new();
        for (place, count) in counts {
            let [column, row] = place.map(f64::from_bits);
            cells.push(Cell {
                across: column * width..(column + 1.0) * width,
                up: rows.edge(row)..rows.edge(row + 1.0),
                // A single answer in a cell must be visible.
                share: (20.0 + (80.0 * f64::from(count) / f64::from(most)).round()) / 100.0,
            });
        }
        drawn.push(Drawn {
            cells,
            ..Drawn::of(&series[index].name, Look::nth(index))
        });
    }
    let plot = Plot {
        title,
        description: format!(
            "Latencies over {} s, from {} to {}.",
            figures::ratio(end),
            figures::milliseconds(low),
            figures::milliseconds(high)
        ),
        across: Axis::seconds(end),
        has_columns: false,
        up: Axis::values("latency", (low, high), &figures::milliseconds),
        drawn,
    };
    plot.svg()
}

/// The rows of a heat map's cells, from 0 up.
struct Rows {
    is_log: bool,
    /// Greatest latency that is drawn.
    high: f64,
}

impl Rows {
    /// Returns the row of a latency, with its place within the row as a fraction.
    fn of(&self, ms: f64) -> f64 {
        if self.is_log {
            ms.log(FACTOR)
        } else {
            ms / self.high * ROWS
        }
    }

    /// Returns the latency at the lower edge of a row.
    fn edge(&self, row: f64) -> f64 {
        if self.is_log {
            FACTOR.powf(row)
        } else {
            row / ROWS * self.high
        }
    }
}

/// Gives each variant among `rounds` a look, in alphabetical order: problem before solution.
fn looks<'a>(rounds: impl Iterator<Item = &'a Round>) -> BTreeMap<&'a str, Look> {
    let mut variants: Vec<&str> = rounds.map(|round| round.variant.as_str()).collect();
    variants.sort_unstable();
    variants.dedup();
    Look::of_each(&variants).into_iter().collect()
}
