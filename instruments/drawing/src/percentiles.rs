//! A plot of latencies over percentiles.

use statistics::figures;

use crate::canvas::{Axis, Drawn, Look, Plot, is_drawable};
use crate::scale::{Scale, span};

/// Latencies that a line shows.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its entry in the key; empty for none.
    pub name: &'a str,
    /// Its colour and mark.
    pub look: Look,
    /// Quantiles (0 to 1), rising, each with its latency in milliseconds.
    pub quantiles: &'a [(f64, f64)],
    /// Quantile from which on latencies are lower bounds.
    pub lower_bound_from: Option<f64>,
    /// Number of latencies.
    pub count: u64,
}

/// Draws latency against percentile. The percentiles are spread as 1/(1-q), as in G. Tene's HDR histogram plots: each step
/// to the right shows ten times fewer, slower answers.
///
/// `n` latencies say nothing about fewer than one in `n`, so a line ends there: in a hollow mark if the latency there is
/// only a lower bound. `key` has further entries of the key, and `each` says what a line stands for. `None` if there is
/// nothing to draw.
pub fn by_percentile(
    title: &str,
    key: &[(&str, Look)],
    lines: &[Line<'_>],
    each: &str,
) -> Option<String> {
    let mut drawn = Vec::new();
    for (name, look) in key {
        drawn.push(Drawn::of(name, *look));
    }
    let mut shown_ms = Vec::new();
    let mut rarest = 10.0_f64;
    for one in lines {
        let (mut line, mut is_bound) = (Vec::new(), false);
        for (quantile, ms) in one.quantiles {
            let x = 1.0 / (1.0 - quantile);
            if (1.0..=one.count as f64).contains(&x) && *ms > 0.0 && is_drawable(*ms) {
                line.push((x, *ms));
                is_bound = one.lower_bound_from.is_some_and(|from| *quantile >= from);
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
            ..Drawn::of(one.name, one.look)
        });
    }
    if drawn.iter().any(|one| one.hollow) {
        drawn.push(Drawn::at_least());
    }
    let (low, high) = span(shown_ms.into_iter())?;
    let plot = Plot {
        title,
        description: format!(
            "Latency from {} to {} over percentiles, one line a {each}.",
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
