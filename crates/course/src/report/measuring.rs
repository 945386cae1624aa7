//! Plots of the tables that studies print: `flamegraphs/measuring/NAME.md` becomes
//! `flamegraphs/measuring/plots/NAME.svg`.

use engine::figures::{self, number};

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
        "rate-sweep-random" => by_rate(
            "99th percentile and mean by rate, random arrivals",
            heads,
            rows,
        ),
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
    let lines = table.lines().filter_map(|line| {
        let cells = line.trim().strip_prefix('|')?.trim_end_matches('|');
        let cells = cells.split('|').map(|cell| cell.trim().replace('`', ""));
        Some(cells.collect())
    });
    lines
        .filter(|cells: &Vec<String>| !cells.iter().all(|cell| cell.starts_with("--")))
        .collect()
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

fn by_rate(title: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    lines(title, "requests asked per second", heads, rows)
}

/// Draws every column of times against the first column.
fn lines(title: &str, across: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let is_time = |cell: &String| cell.ends_with(" ms") || cell.ends_with(" s");
    let is_shown = |column: usize| rows.iter().any(|row| is_time(&row[column]));
    let series = marks(heads, rows, is_shown, 1e3);
    let across = Direction::new(across, &figures::count);
    plots::xy(title, &across, &latency("latency"), &series, true)
}

/// Draws every column of rates against the first column.
fn per_second(title: &str, across: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let is_shown = |column: usize| heads[column].ends_with(" per second");
    let series = marks(heads, rows, is_shown, 1.0);
    let [across, up] = [across, "per second"].map(|name| Direction::new(name, &figures::count).linear());
    plots::xy(title, &across, &up, &series, true)
}

/// Makes marks of each column that is shown, its figures times `unit`, against the first column.
fn marks(
    heads: &[String],
    rows: &[Vec<String>],
    is_shown: impl Fn(usize) -> bool,
    unit: f64,
) -> Vec<Marks> {
    let mut series = Vec::new();
    for column in (1..heads.len()).filter(|column| is_shown(*column)) {
        let point = |row: &Vec<String>| {
            Some(Point {
                is_at_least: row[column].starts_with("over "),
                ..Point::at(number(&row[0])?, number(&row[column])? * unit)
            })
        };
        series.push(Marks {
            name: heads[column].clone(),
            points: rows.iter().filter_map(point).collect(),
        });
    }
    series
}

/// Draws a heat map. A row holds a variant, the second at which its first ping was due, the seconds between
/// two pings, and the pings' latencies in ms.
fn heat_map(title: &str, rows: &[Vec<String>]) -> Option<String> {
    let points = |row: &Vec<String>| {
        let (from, apart) = (row[1].parse::<f64>().ok()?, row[2].parse::<f64>().ok()?);
        let latencies = (0_u32..).zip(row[3].split(' '));
        let points = latencies
            .filter_map(|(number, ms)| Some((from + apart * f64::from(number), ms.parse().ok()?)));
        Some(points.collect::<Vec<(f64, f64)>>())
    };
    let series: Vec<Series> = by(0, rows)
        .into_iter()
        .map(|(name, rows)| Series {
            name: name.to_owned(),
            points: rows.into_iter().filter_map(points).flatten().collect(),
        })
        .collect();
    plots::heat_map(title, &series)
}

fn latency(name: &str) -> Direction<'static> {
    Direction::new(name, &figures::milliseconds)
}
