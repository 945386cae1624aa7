//! Plots as SVG. Equal figures give equal bytes. Plots are legible on light and dark pages, on a phone, and
//! to readers who cannot tell colours apart. A plot without anything to show is `None`.

use std::collections::BTreeMap;

use crate::measurement::record::{Purpose, Round};
use engine::outcome::Latency;

use drawing::{
    canvas::{Axis, Cell, Drawn, Look, Plot, is_drawable},
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
        drawn.push(at_least());
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

/// Returns the key's entry for hollow marks that are lower bounds.
fn at_least() -> Drawn {
    Drawn {
        hollow: true,
        ..Drawn::of("at least", Look::PLAIN)
    }
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

/// Draws latency against percentile, with a line for each round. The percentiles are spread as 1/(1-q), as in
/// G. Tene's HDR histogram plots: each step to the right shows ten times fewer, slower answers.
///
/// A round of n answers says nothing about fewer than one in n, so its line ends there: in a hollow mark if the
/// latency there is only a lower bound. `None` if no round has answers.
pub fn by_percentile(title: &str, rounds: &[&Round], of: Of) -> Option<String> {
    let looks = looks(rounds.iter().copied());
    let mut drawn = Vec::new();
    for (name, look) in &looks {
        drawn.push(Drawn::of(name, *look));
    }
    let mut shown_ms = Vec::new();
    let mut rarest = 10.0_f64;
    for round in rounds {
        let Some((latency, count)) = of.latencies(round) else {
            continue;
        };
        let (mut line, mut is_bound) = (Vec::new(), false);
        for (quantile, ms) in &latency.quantiles {
            let x = 1.0 / (1.0 - quantile);
            if (1.0..=count as f64).contains(&x) && *ms > 0.0 && is_drawable(*ms) {
                line.push((x, *ms));
                is_bound = latency
                    .lower_bound_from
                    .is_some_and(|from| *quantile >= from);
            }
        }
        let [_, .., last] = line[..] else {
            continue;
        };
        for (x, ms) in &line {
            rarest = rarest.max(*x);
            shown_ms.push(*ms);
        }
        drawn.push(Drawn {
            marks: vec![last],
            line,
            hollow: is_bound,
            ..Drawn::of("", looks[round.variant.as_str()])
        });
    }
    if drawn.iter().any(|one| one.hollow) {
        drawn.push(at_least());
    }
    let (low, high) = span(shown_ms.into_iter())?;
    let plot = Plot {
        title,
        description: format!(
            "Latency from {} to {} over percentiles, one line a round.",
            figures::milliseconds(low),
            figures::milliseconds(high)
        ),
        across: Axis {
            scale: Scale::log(1.0..rarest * 1.2),
            name: "percentile of the answers".to_owned(),
            label: &percentile,
            labels: 6,
        },
        has_columns: true,
        up: Axis::values("latency", (low, high), &figures::milliseconds),
        drawn,
    };
    plot.svg()
}

/// Formats 1, 10, 100, … as `fastest`, `90 %`, `99 %`, …; other values have no label.
fn percentile(x: f64) -> String {
    let power = (0..=20_u32).find(|power| (x.log10() - f64::from(*power)).abs() <= 1e-6);
    match power {
        None => String::new(),
        Some(0) => "fastest".to_owned(),
        Some(1) => "90 %".to_owned(),
        Some(2) => "99 %".to_owned(),
        Some(power) => format!("99.{} %", "9".repeat(power as usize - 2)),
    }
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
