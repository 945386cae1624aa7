//! Anything against anything: series of marks, joined by lines where the order means something.

use super::{
    PlotError,
    canvas::{self, Axis, Drawn, KeyEntry, Look, Plot},
    scale::{self, Scale, is_apart, span},
};

/// What one direction of the plot shows.
pub struct Direction<'a> {
    /// What it is called.
    pub name: String,
    /// A value as text.
    pub label: &'a dyn Fn(f64) -> String,
    /// Whether its lowest and highest value are told to those who do not see the plot.
    pub is_told: bool,
}

impl Direction<'_> {
    fn text(&self, value: f64) -> String {
        scale::text(value, self.label)
    }

    /// What stands at the axis, as far as a phone has room for it.
    fn title(&self, is_log: bool) -> String {
        let scale = if is_log { " (log scale)" } else { "" };
        let mut name = self.name.as_str();
        let room = ROOM - scale.len();
        if name.len() > room {
            name = name.split(", ").next().unwrap_or(name);
        }
        if name.len() <= room {
            return format!("{name}{scale}");
        }
        let words = name.match_indices(' ').map(|(end, _)| end);
        let end = words.take_while(|end| *end < room).last().unwrap_or(0);
        format!("{}…{scale}", &name[..end])
    }
}

/// Letters that an axis has room for.
const ROOM: usize = 46;

/// Marks of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks {
    /// What they are, for the key.
    pub name: String,
    /// Where they stand.
    pub points: Vec<Point>,
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its value across.
    pub across: f64,
    /// Its value up.
    pub up: f64,
    /// Whether the value up is a lower limit, as of latencies of which the longest were still running:
    /// its mark is hollow.
    pub is_at_least: bool,
}

impl Point {
    /// A mark whose value is known.
    pub fn at(across: f64, up: f64) -> Self {
        Self {
            across,
            up,
            is_at_least: false,
        }
    }
}

/// Up to eight series of marks. `is_joined` draws a line through each.
///
/// # Errors
///
/// When no series has a point that both directions can show.
pub fn xy(
    title: &str,
    across: &Direction<'_>,
    up: &Direction<'_>,
    series: &[Marks],
    is_joined: bool,
) -> Result<String, PlotError> {
    let can_show = |value: f64| canvas::is_drawable(value) && value >= 0.0;
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let looks = Look::of_each(&names);
    let mut drawn = Vec::new();
    let mut key = Vec::new();
    for (one, (name, look)) in series.iter().zip(looks) {
        let points = one.points.iter().copied();
        let points: Vec<Point> = points
            .filter(|point| can_show(point.across) && can_show(point.up))
            .collect();
        if points.is_empty() {
            continue;
        }
        key.push(KeyEntry {
            text: name.to_owned(),
            look,
            hollow: false,
        });
        for hollow in [false, true] {
            let marks = points.iter().filter(|point| point.is_at_least == hollow);
            let line = points.iter().filter(|_| is_joined && !hollow);
            drawn.push(Drawn {
                line: line.map(|point| (point.across, point.up)).collect(),
                marks: marks.map(|point| (point.across, point.up)).collect(),
                hollow,
                ..Drawn::of(look)
            });
        }
    }
    if drawn.iter().any(|one| one.hollow && !one.marks.is_empty()) {
        key.push(KeyEntry {
            text: "at least".to_owned(),
            look: Look::nth(0),
            hollow: true,
        });
    }
    let points: Vec<(f64, f64)> = drawn.iter().flat_map(|one| one.marks.clone()).collect();
    let Some(wide) = span(points.iter().map(|(x, _)| *x)) else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let high = span(points.iter().map(|(_, y)| *y)).unwrap_or(wide);
    let told = [(across, wide), (up, high)].map(|(direction, (low, high))| {
        if direction.is_told {
            let (low, high) = (direction.text(low), direction.text(high));
            format!("{}: {low} to {high}", direction.name)
        } else {
            direction.name.clone()
        }
    });
    let mut places: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let (is_wide, is_high) = (is_apart(wide), is_apart(high));
    let plot = Plot {
        title,
        description: format!("{}, for {}.", told.join("; "), names.join(", ")),
        key,
        across: Axis {
            // Lines go through a few places, and those are what the axis names.
            range: Scale::over(wide, if is_joined { places } else { Vec::new() }),
            name: &across.title(is_wide),
            label: &|value| across.text(*value),
            labels: 5,
        },
        has_columns: true,
        up: Axis {
            range: Scale::over(high, Vec::new()),
            name: &up.title(is_high),
            label: &|value| up.text(*value),
            labels: 6,
        },
        drawn,
    };
    plot.svg()
}
