//! Plots of the tables that examples print: `flamegraphs/measuring/NAME.md` gives
//! `flamegraphs/measuring/plots/NAME.svg`.

use measurement::figures::{self, number};

use crate::plots::{self, Direction, Marks, PlotError, Point, Series};

/// The plot of a table; `None` for one that has no plot.
///
/// # Errors
///
/// When the table lacks what its plot shows.
pub fn plot(name: &str, table: &str) -> Option<Result<String, PlotError>> {
    let rows = rows(table);
    Some(match name {
        "throttling" => lines("Latency by workers, a quota of one CPU", "workers", &rows),
        "rate-sweep" => lines(
            "99th percentile by rate",
            "requests asked per second",
            &rows,
        ),
        "coordinated-omission" => percentiles("Latency, counted from two moments", &rows),
        "hidden-stall" => percentiles("Latency of a ping, two ways to ask", &rows),
        "blocking-strategies" => strategies(&rows),
        "heat-map-5" => heat_map("Pings of chapter 5 over time", &rows),
        "heat-map-8" => heat_map("Pings of chapter 8 over time", &rows),
        _ => return None,
    })
}

/// The cells of a table's rows, its headings first.
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

/// Every column of times against the first.
fn lines(title: &str, across: &str, rows: &[Vec<String>]) -> Result<String, PlotError> {
    let Some((heads, rows)) = rows.split_first() else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let is_time = |column: &usize| {
        let times = |unit: &str| rows.iter().any(|row| row[*column].ends_with(unit));
        *column > 0 && (times(" ms") || times(" s"))
    };
    let series: Vec<Marks> = (0..heads.len())
        .filter(is_time)
        .map(|column| Marks {
            name: heads[column].clone(),
            points: rows
                .iter()
                .filter_map(|row| {
                    Some(Point {
                        is_at_least: row[column].starts_with("over "),
                        ..Point::at(number(&row[0])?, number(&row[column])? * 1e3)
                    })
                })
                .collect(),
        })
        .collect();
    plots::xy(
        title,
        &Direction {
            name: across.to_owned(),
            label: &figures::count,
            is_told: true,
        },
        &latency("latency"),
        &series,
        true,
    )
}

/// A table whose rows are percentiles, and whose columns are ways to count them. The largest of all
/// stands where one in a thousand would.
fn percentiles(title: &str, rows: &[Vec<String>]) -> Result<String, PlotError> {
    let rank = |cell: &str| match cell {
        "median" => Some(2.0),
        "90th percentile" => Some(10.0),
        "99th percentile" => Some(100.0),
        "largest" => Some(1_000.0),
        _ => None,
    };
    let heads = rows.first().cloned().unwrap_or_default();
    let series: Vec<Marks> = (1..heads.len())
        .map(|column| Marks {
            name: heads[column].clone(),
            points: rows
                .iter()
                .filter_map(|row| Some(Point::at(rank(&row[0])?, number(row.get(column)?)? * 1e3)))
                .collect(),
        })
        .collect();
    let label = |x: f64| {
        let places = [
            (2.0, "median"),
            (10.0, "90 %"),
            (100.0, "99 %"),
            (1_000.0, "largest"),
        ];
        let place = places.iter().find(|(place, _)| (x - place).abs() < 1e-6);
        place.map_or_else(String::new, |(_, text)| (*text).to_owned())
    };
    plots::xy(
        title,
        &Direction {
            name: "percentile of the answers".to_owned(),
            label: &label,
            is_told: false,
        },
        &latency("latency"),
        &series,
        true,
    )
}

/// What a batch costs against what a ping waits meanwhile: a series a strategy, a mark a workload.
fn strategies(rows: &[Vec<String>]) -> Result<String, PlotError> {
    let title = "Cost of a batch against starvation";
    let heads = rows.first().cloned().unwrap_or_default();
    let place = |head: &str| heads.iter().position(|one| one.starts_with(head));
    let (Some(strategy), Some(batch), Some(ping)) =
        (place("strategy"), place("a batch"), place("ping"))
    else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let mut series: Vec<Marks> = Vec::new();
    for row in &rows[1..] {
        let name = &row[strategy];
        if !series.iter().any(|one| one.name == *name) {
            series.push(Marks {
                name: name.clone(),
                points: Vec::new(),
            });
        }
        let one = series.iter_mut().find(|one| one.name == *name);
        let point = number(&row[batch]).zip(number(&row[ping]));
        if let (Some(one), Some((cost, waited))) = (one, point) {
            one.points.push(Point::at(cost * 1e3, waited * 1e3));
        }
    }
    plots::xy(
        title,
        &Direction {
            name: "a batch".to_owned(),
            label: &figures::milliseconds,
            is_told: true,
        },
        &latency("ping, p99"),
        &series,
        false,
    )
}

/// Rows of a variant: from which second on its pings were due, how many seconds lay between two of them,
/// and their latencies in ms.
fn heat_map(title: &str, rows: &[Vec<String>]) -> Result<String, PlotError> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows.iter().skip(1) {
        let [variant, from, apart, latencies] = row.as_slice() else {
            continue;
        };
        let seconds = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        let (from, apart) = (seconds(from), seconds(apart));
        let points = (0_u32..).zip(latencies.split(' '));
        let points = points
            .filter_map(|(number, ms)| Some((from + apart * f64::from(number), ms.parse().ok()?)));
        match all.iter_mut().find(|one| one.name == *variant) {
            Some(one) => one.points.extend(points),
            None => all.push(Series {
                name: variant.clone(),
                points: points.collect(),
            }),
        }
    }
    plots::heat_map(title, &all)
}

fn latency(name: &str) -> Direction<'static> {
    Direction {
        name: name.to_owned(),
        label: &figures::milliseconds,
        is_told: true,
    }
}
