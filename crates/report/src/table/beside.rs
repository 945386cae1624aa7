//! What else the server counted: shown, and claimed of nothing.

use analysis::verdict::MechanismFinding;
use measurement::{
    chapter_file::Beside,
    record::{Record, Round},
};

/// The median over the rounds that the mechanism was counted in, in its unit; `None` where one of
/// them lacks it.
pub(crate) fn beside_text(record: &Record, beside: &Beside, variant: &str) -> Option<String> {
    let rounds = record
        .rounds_for(MechanismFinding::purpose(&record.chapter))
        .filter(|round| round.variant == variant);
    Some(beside.unit.text(median(rounds, beside)?))
}

/// The median of some rounds; a count may be 0, so that it is no median of ratios.
pub(super) fn median<'a>(rounds: impl Iterator<Item = &'a Round>, beside: &Beside) -> Option<f64> {
    let readings: Option<Vec<f64>> = rounds
        .map(|round| round.readings.get(&beside.metric).copied())
        .collect();
    let mut readings = readings?;
    readings.sort_unstable_by(f64::total_cmp);
    let last = readings.len().checked_sub(1)?;
    Some(f64::midpoint(
        readings[last / 2],
        readings[last.div_ceil(2)],
    ))
}
