//! The book's table, with the published figures beside ours.

use std::error::Error;
use std::fmt::Write as _;

use chapter8::Strategy;
use measurement::figures;

use crate::cell::{Cell, Measured};
use crate::workload::Workload;

const PUBLISHED: &str = include_str!("../../../../reference/seed-figures.toml");

/// Everything that was measured, in Markdown.
pub(crate) fn of(measured: &[(Cell, Measured)]) -> Result<String, Box<dyn Error>> {
    let mut text = String::from(
        "| workload | strategy | a batch | times `direct` | published | timer late, p99 | ping, p99 |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let published = published()?;
    for (cell, figures_of) in measured {
        let timer = milliseconds(&figures_of.timer);
        let ping = milliseconds(&figures_of.ping);
        let Some((workload, strategy)) = cell.0 else {
            writeln!(text, "| none | | | | | {timer} | {ping} |")?;
            continue;
        };
        let direct = Cell(Some((workload, Strategy::Direct)));
        let of_direct = measured.iter().find(|(other, _)| *other == direct);
        let batch = quantile(&figures_of.batches, 0.5);
        let ours = of_direct.map_or(f64::NAN, |(_, direct)| {
            batch / quantile(&direct.batches, 0.5)
        });
        let theirs = published(workload, strategy) / published(workload, Strategy::Direct);
        writeln!(
            text,
            "| {} | `{}` | {} µs | {ours:.2} | {theirs:.2} | {timer} | {ping} |",
            workload.key(),
            strategy.key(),
            figures::count((batch / 1e3).round()),
        )?;
    }
    Ok(text)
}

fn milliseconds(all: &[f64]) -> String {
    figures::milliseconds(quantile(all, 0.99))
}

/// The value that a share of all is not above.
fn quantile(all: &[f64], share: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The index of an existing value: small and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (share * sorted.len() as f64) as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

/// Published nanoseconds a batch.
fn published() -> Result<impl Fn(Workload, Strategy) -> f64, Box<dyn Error>> {
    let all: toml::Table = PUBLISHED.parse()?;
    let rows = all
        .get("blocking_strategies")
        .and_then(|table| table.get("ns_per_iter")?.as_array().cloned())
        .ok_or("the published figures are gone")?;
    Ok(move |workload: Workload, strategy: Strategy| {
        let name = match strategy {
            Strategy::Dispatch => "dispatch_rx",
            other => other.key(),
        };
        let row = rows.iter().filter_map(toml::Value::as_array);
        let mut of_workload =
            row.filter(|row| row.first().and_then(toml::Value::as_str) == Some(workload.key()));
        let row = of_workload.next().map_or(&[][..], Vec::as_slice);
        let at = row.iter().position(|cell| cell.as_str() == Some(name));
        let ns = at.and_then(|at| row.get(at + 1)?.as_integer());
        ns.map_or(f64::NAN, |ns| ns as f64)
    })
}
