//! Throughput of every round, in the order in which they ran.

use super::{
    PlotError,
    canvas::{self, Axis, Drawn, KeyEntry, Look, Plot},
    scale::{self, Scale, is_apart},
};
use measurement::{
    figures,
    record::{Purpose, Round},
};

/// Requests per second of the rounds of the fix again (hollow) and of problem and fix (filled) in one scenario.
/// Other rounds ran another load and are left out.
///
/// # Errors
///
/// When none of them has answers.
pub fn throughput_of_rounds(
    title: &str,
    rounds: &[Round],
    scenario: &str,
) -> Result<String, PlotError> {
    // Numbered as everywhere else: by the place among all rounds.
    let shown: Vec<(f64, &Round)> = (1_u32..)
        .zip(rounds)
        .filter(|(_, round)| round.scenario == scenario)
        .filter(|(_, round)| matches!(round.purpose, Purpose::Equal | Purpose::Claim))
        .filter(|(_, round)| round.outcome.requests_per_second > 0.0)
        .filter(|(_, round)| canvas::is_drawable(round.outcome.requests_per_second))
        .map(|(number, round)| (f64::from(number), round))
        .collect();
    let rates = || {
        shown
            .iter()
            .map(|(_, round)| round.outcome.requests_per_second)
    };
    let low = rates().fold(f64::INFINITY, f64::min);
    let high = rates().fold(0.0, f64::max);
    let Some((last, _)) = shown.last() else {
        return Err(PlotError::Empty(title.to_owned()));
    };
    let drawn = shown.iter().map(|(number, round)| Drawn {
        marks: vec![(*number, round.outcome.requests_per_second)],
        hollow: round.purpose == Purpose::Equal,
        ..Drawn::of(Look::of_variant(&round.variant))
    });
    let plot = Plot {
        title,
        description: format!(
            "Requests per second of {} rounds, from {} to {}.",
            shown.len(),
            figures::ratio(low),
            figures::ratio(high)
        ),
        key: key(&shown),
        across: Axis {
            range: 0.5..last + 0.5,
            name: "round, in the order in which they ran",
            label: &|x| whole(*x),
            labels: if *last > 14.0 { 10 } else { 20 },
        },
        has_columns: false,
        up: Axis {
            range: Scale::over((low, high), Vec::new()),
            name: if is_apart((low, high)) {
                "requests per second (log scale)"
            } else {
                "requests per second"
            },
            label: &|rate| scale::text(*rate, &figures::count),
            labels: 6,
        },
        drawn: drawn.collect(),
    };
    plot.svg()
}

fn whole(x: f64) -> String {
    if (x - x.round()).abs() < 1e-6 {
        figures::count(x)
    } else {
        String::new()
    }
}

fn key(shown: &[(f64, &Round)]) -> Vec<KeyEntry> {
    let mut key: Vec<KeyEntry> = Vec::new();
    for (purpose, hollow) in [(Purpose::Claim, false), (Purpose::Equal, true)] {
        let rounds = shown.iter().filter(|(_, round)| round.purpose == purpose);
        for variant in canvas::variants(rounds.map(|(_, round)| *round)) {
            key.push(KeyEntry {
                text: if hollow {
                    format!("{variant}, equal servers (A/A)")
                } else {
                    variant.to_owned()
                },
                look: Look::of_variant(variant),
                hollow,
            });
        }
    }
    key
}
