//! Latency by percentile, every round a line.

use plotters::prelude::IntoLogRange as _;

use super::{
    PlotError,
    canvas::{self, Axis, Drawn, KeyEntry, Look, Plot},
    scale::{self, Scale, is_apart},
};
use measurement::{figures, outcome::Latency, record::Round};

/// Latency against percentile for rounds of any variants. The percentiles are
/// spread as 1/(1-q), as in G. Tene's HDR histogram plots: each step to the
/// right looks at ten times fewer, slower answers.
///
/// A round of n answers says nothing about fewer than one in n: its line ends there.
///
/// # Errors
///
/// When no round has answers.
pub fn latency_by_percentile(title: &str, rounds: &[&Round]) -> Result<String, PlotError> {
    by_percentile(title, rounds, |round| {
        Some((&round.outcome.latency, round.outcome.completed))
    })
}

/// The same of the rounds' bystanders, from the moment at which each was due.
///
/// # Errors
///
/// When no round has answers to bystanders.
pub fn bystanders_by_percentile(title: &str, rounds: &[&Round]) -> Result<String, PlotError> {
    by_percentile(title, rounds, |round| {
        let bystander = round.outcome.bystander.as_ref()?;
        Some((&bystander.latency, bystander.completed))
    })
}

/// `answers` gives a round's latencies, and of how many answers they are.
fn by_percentile(
    title: &str,
    rounds: &[&Round],
    answers: fn(&Round) -> Option<(&Latency, u64)>,
) -> Result<String, PlotError> {
    let lines: Vec<(Look, Vec<(f64, f64)>)> = rounds
        .iter()
        .filter_map(|round| {
            let (latency, count) = answers(round)?;
            Some((Look::of_variant(&round.variant), line_of(latency, count)))
        })
        .filter(|(_, line)| line.len() > 1)
        .collect();
    let points = || lines.iter().flat_map(|(_, line)| line.iter().copied());
    let Some((low, high)) = span(points().map(|(_, ms)| ms)) else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let rarest = points().map(|(x, _)| x).fold(10.0, f64::max);
    let drawn = lines.into_iter().map(|(look, line)| Drawn {
        marks: line.last().copied().into_iter().collect(),
        line,
        ..Drawn::of(look)
    });
    let plot = Plot {
        title,
        description: format!(
            "Latency from {} to {} over percentiles, one line a round.",
            figures::milliseconds(low),
            figures::milliseconds(high)
        ),
        key: key(rounds),
        across: Axis {
            range: (1.0..rarest * 1.2).log_scale(),
            name: "percentile of the answers",
            label: &|x| percentile(*x),
            labels: 6,
        },
        has_columns: true,
        up: Axis {
            range: Scale::over((low, high), Vec::new()),
            name: if is_apart((low, high)) {
                "latency (log scale)"
            } else {
                "latency"
            },
            label: &|ms| scale::text(*ms, &figures::milliseconds),
            labels: 6,
        },
        drawn: drawn.collect(),
    };
    plot.svg()
}

/// `(1/(1-q), ms)` as far as so many answers carry.
fn line_of(latency: &Latency, count: u64) -> Vec<(f64, f64)> {
    latency
        .quantiles
        .iter()
        .map(|(q, ms)| (1.0 / (1.0 - q), *ms))
        .filter(|(x, ms)| {
            canvas::is_drawable(*x)
                && canvas::is_drawable(*ms)
                && *x >= 1.0
                && *x <= count as f64
                && *ms > 0.0
        })
        .collect()
}

fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// 1, 10, 100, … as `fastest`, `90 %`, `99 %`, …; what lies between has no label.
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

fn key(rounds: &[&Round]) -> Vec<KeyEntry> {
    canvas::variants(rounds.iter().copied())
        .into_iter()
        .map(|variant| KeyEntry {
            text: variant.to_owned(),
            look: Look::of_variant(variant),
            hollow: false,
        })
        .collect()
}
