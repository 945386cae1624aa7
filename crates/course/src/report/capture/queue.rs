//! Plots of a queue over time, and of the answers that come in time meanwhile.

use crate::measurement::claim::PROBLEM;
use crate::measurement::record::{Purpose, Record, Round};
use crate::report::plots::{self, Series};

/// Draws problem and fix on one scale; `None` for a variant whose queue was not counted.
pub(super) fn plots(record: &Record) -> [Option<String>; 2] {
    let rounds = [PROBLEM, &record.variant].map(|variant| counted(record, variant));
    let mut most = 0.0_f64;
    for line in rounds.into_iter().flatten().flat_map(lines) {
        for (_, value) in line.points {
            most = most.max(value);
        }
    }
    rounds.map(|round| {
        let round = round?;
        let title = format!("Queue and goodput of the {}", round.variant);
        plots::time_series_up_to(most, &title, "requests", &lines(round))
    })
}

/// Finds the round of a variant in which the queue was counted.
fn counted<'r>(record: &'r Record, variant: &str) -> Option<&'r Round> {
    let scenario = record.chapter.queue()?;
    record
        .rounds_for(Purpose::Series)
        .find(|round| round.variant == variant && round.scenario == scenario)
}

/// The queue at each look, and the answers of each second at its middle.
fn lines(round: &Round) -> [Series; 2] {
    let mut waiting = Vec::new();
    for at in &round.series {
        waiting.push((at.s, at.waiting as f64));
    }
    let mut answers = Vec::new();
    for (second, count) in (0_u32..).zip(&round.outcome.per_second) {
        answers.push((f64::from(second) + 0.5, *count as f64));
    }
    [
        ("waiting", waiting),
        ("answered in time per second", answers),
    ]
    .map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    })
}
