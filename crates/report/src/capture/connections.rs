//! Connections over time, a plot a variant.

use crate::plots::{self, Series};
use measurement::{
    claim::PROBLEM,
    record::{ConnectionsAt, Purpose, Record},
};

/// Connections taken up and finished since the load began, of problem and solution.
pub(super) fn plots(record: &Record) -> [(&'static str, Option<String>); 2] {
    let of = |variant: &str| {
        let line = |name: &str, count: fn(&ConnectionsAt) -> u64| Series {
            name: name.to_owned(),
            points: record
                .rounds_for(Purpose::Series)
                .filter(|round| round.variant == variant)
                .flat_map(|round| &round.connections)
                .map(|at| (at.s, count(at) as f64))
                .collect(),
        };
        let lines = [
            line("taken up", |at| at.accepted),
            line("finished", |at| at.finished),
        ];
        plots::time_series(
            &format!("Connections of the {variant}"),
            "connections since the start",
            &lines,
        )
    };
    [
        ("connections-problem", of(PROBLEM)),
        ("connections-solution", of(&record.variant)),
    ]
}
