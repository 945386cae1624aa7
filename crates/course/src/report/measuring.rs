//! Plots of the tables that studies print: `flamegraphs/measuring/NAME.md` becomes
//! `flamegraphs/measuring/plots/NAME.svg`.

use statistics::figures::{self, number};

use crate::report::plots::{self, Direction, Marks, Point, Series};

/// The tables that have a plot.
pub const PLOTTED: [&str; 5] = [
    "throttling",
    "rate-sweep",
    "rate-sweep-random",
    "accept-ramp",
    "heat-map-8",
];

/// Draws the plot of one of the tables; `None` if the table lacks the figures for it.
pub fn plot(name: &str, table: &str) -> Option<String> {
    let rows = rows(table);
    let (heads, rows) = rows.split_first()?;
    match name {
        "throttling" => {
            let title = "Latency by workers, a quota of one CPU";
            lines(title, "workers", heads, rows)
        }
        "rate-sweep" => by_rate("99th percentile by rate", heads, rows),
        "rate-sweep-random" => by_rate("99th percentile by rate, random arrivals", heads, rows),
        "accept-ramp" => {
            let title = "Connections accepted and finished by rate";
            per_second(title, "requests due per second", heads, rows)
        }
        "heat-map-8" => heat_map("Pings of chapter 8 over time", rows),
        _ => None,
    }
}

/// Splits a table into the cells of its rows, with the headings first.
fn rows(table: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for line in table.lines() {
        let Some(cells) = line.trim().strip_prefix('|') else {
            continue;
        };
        let mut row = Vec::new();
        for cell in cells.trim_end_matches('|').split('|') {
            row.push(cell.trim().replace('`', ""));
        }
        if !row.iter().all(|cell| cell.starts_with("--")) {
            rows.push(row);
        }
    }
    rows
}

/// Groups the rows by the content of one column, in the order of first appearance.
fn by(column: usize, rows: &[Vec<String>]) -> Vec<(&str, Vec<&Vec<String>>)> {
    let mut groups: Vec<(&str, Vec<_>)> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|(name, _)| *name == row[column]) {
            Some((_, group)) => group.push(row),
            None => groups.push((&row[column], vec![row])),
        }
    }
    groups
}

/// Draws the 99th percentiles of requests and pings; the means are in the table alone.
fn by_rate(title: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let means = heads.iter().position(|head| head.ends_with(" mean"));
    let heads = &heads[..means.unwrap_or(heads.len())];
    lines(title, "requests asked per second", heads, rows)
}

/// Draws every column of times against the first column.
fn lines(title: &str, across: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let mut shown = Vec::new();
    for column in 1..heads.len() {
        let mut cells = rows.iter().map(|row| &row[column]);
        if cells.any(|cell| cell.ends_with(" ms") || cell.ends_with(" s")) {
            shown.push(column);
        }
    }
    let series = marks(heads, rows, &shown, 1e3);
    let across = Direction::new(across, &figures::count);
    plots::xy(title, &across, &latency("latency"), &series, true)
}

/// Draws every column of rates against the first column.
fn per_second(title: &str, across: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let mut shown: Vec<usize> = (1..heads.len()).collect();
    shown.retain(|column| heads[*column].ends_with(" per second"));
    let series = marks(heads, rows, &shown, 1.0);
    let [across, up] =
        [across, "per second"].map(|name| Direction::new(name, &figures::count).linear());
    plots::xy(title, &across, &up, &series, true)
}

/// Makes marks of some columns, their figures times `unit`, against the first column.
fn marks(heads: &[String], rows: &[Vec<String>], columns: &[usize], unit: f64) -> Vec<Marks> {
    let mut series = Vec::new();
    for &column in columns {
        let mut points = Vec::new();
        for row in rows {
            if let (Some(across), Some(up)) = (number(&row[0]), number(&row[column])) {
                points.push(Point {
                    is_at_least: row[column].starts_with("over "),
                    ..Point::at(across, up * unit)
                });
            }
        }
        series.push(Marks {
            name: heads[column].clone(),
            points,
        });
    }
    series
}

/// Draws a heat map. A row holds a variant, the second at which its first ping was due, the seconds between
/// two pings, and the pings' latencies in ms.
fn heat_map(title: &str, rows: &[Vec<String>]) -> Option<String> {
    let mut series = Vec::new();
    for (name, rows) in by(0, rows) {
        let mut points = Vec::new();
        for row in rows {
            let (Ok(from), Ok(apart)) = (row[1].parse::<f64>(), row[2].parse::<f64>()) else {
                continue;
            };
            for (number, ms) in row[3].split(' ').enumerate() {
                if let Ok(ms) = ms.parse() {
                    points.push((from + apart * number as f64, ms));
                }
            }
        }
        series.push(Series {
            name: name.to_owned(),
            points,
        });
    }
    plots::heat_map(title, &series)
}

fn latency(name: &str) -> Direction<'static> {
    Direction::new(name, &figures::milliseconds)
}
