//! Ends of requests by the phase of the load in which they were due.

use std::time::{Duration, Instant};

use crate::outcome::PhaseOutcome;
use crate::traffic::{Phase, Traffic};

/// Length of the slots by which the return to answers in time is found.
const SLOT: Duration = Duration::from_millis(100);
/// Number of slots over which answers have to stay in time.
const STAYS: usize = 10;
/// Share of the due requests that is answered in time once a service has recovered.
const NEARLY_ALL: f64 = 0.9;
/// Longest load whose slots are kept, in slots: an hour.
const MOST_SLOTS: usize = 36_000;

/// End of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A right answer came in time.
    InTime,
    /// The client closed the connection before an answer came.
    GivenUp,
    /// The server answered with an allowed status.
    Refused,
}

/// Counts of one generator thread, or of all threads after [`Tally::merge`].
#[derive(Debug)]
pub(super) struct Tally {
    /// Start of the first phase.
    start: Instant,
    /// Seconds from the start at which each phase ends.
    ends: Vec<f64>,
    phases: Vec<PhaseOutcome>,
    /// Due requests, and those answered in time, by the slot in which they were due.
    slots: Vec<(u32, u32)>,
}

impl Tally {
    /// Creates the counts of a load that begins at `start`; `None` if it has neither phases nor clients that give up.
    pub(super) fn of(load: &Traffic, start: Instant) -> Option<Self> {
        if load.phases.is_empty() && load.clients.is_none() {
            return None;
        }
        let whole = load.warm_up + load.duration;
        let ends = ends(&load.phases, whole.as_secs_f64());
        let (mut phases, mut from) = (Vec::new(), 0.0);
        for to in &ends {
            phases.push(PhaseOutcome {
                seconds: to - from,
                ..PhaseOutcome::default()
            });
            from = *to;
        }
        let slots = whole.as_nanos().div_ceil(SLOT.as_nanos());
        let slots = usize::try_from(slots).unwrap_or(MOST_SLOTS).min(MOST_SLOTS);
        Some(Self {
            start,
            phases,
            ends,
            slots: vec![(0, 0); slots],
        })
    }

    /// Counts a first attempt at a request that was due at `due`.
    pub(super) fn first_attempt(&mut self, due: Instant) {
        self.phase(due).first_attempts += 1;
        if let Some((wanted, _)) = self.slot(due) {
            *wanted += 1;
        }
    }

    /// Counts a further attempt.
    pub(super) fn retry(&mut self, due: Instant) {
        self.phase(due).retries += 1;
    }

    /// Counts a request that could not be sent while its client waited.
    pub(super) fn unsent(&mut self, due: Instant) {
        self.phase(due).unsent += 1;
        if let Some((wanted, _)) = self.slot(due) {
            *wanted += 1;
        }
    }

    /// Counts the end of an attempt.
    pub(super) fn ended(&mut self, due: Instant, end: End) {
        let phase = self.phase(due);
        match end {
            End::InTime => phase.in_time += 1,
            End::GivenUp => phase.given_up += 1,
            End::Refused => phase.refused += 1,
        }
        if end == End::InTime
            && let Some((_, in_time)) = self.slot(due)
        {
            *in_time += 1;
        }
    }

    /// Adds the counts of another thread under the same load.
    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, others) in self.phases.iter_mut().zip(&other.phases) {
            mine.first_attempts += others.first_attempts;
            mine.retries += others.retries;
            mine.in_time += others.in_time;
            mine.given_up += others.given_up;
            mine.refused += others.refused;
            mine.unsent += others.unsent;
        }
        for (mine, others) in self.slots.iter_mut().zip(&other.slots) {
            mine.0 += others.0;
            mine.1 += others.1;
        }
    }

    /// Returns the phases with all that is known of them.
    pub(super) fn into_phases(self) -> Vec<PhaseOutcome> {
        let mut from = 0.0;
        let mut phases = self.phases;
        for (phase, to) in phases.iter_mut().zip(&self.ends) {
            let slots = &self.slots[slot_at(from, &self.slots)..slot_at(*to, &self.slots)];
            if let Some(slot) = recovered_in(slots) {
                phase.in_time_after_s = Some((slot + 1) as f64 * SLOT.as_secs_f64());
            }
            from = *to;
        }
        phases
    }

    fn seconds(&self, due: Instant) -> f64 {
        due.saturating_duration_since(self.start).as_secs_f64()
    }

    fn phase(&mut self, due: Instant) -> &mut PhaseOutcome {
        let seconds = self.seconds(due);
        let index = self.ends.partition_point(|end| *end <= seconds);
        // There is at least one phase; a request that is due at the very end belongs to the last.
        let last = self.phases.len() - 1;
        &mut self.phases[index.min(last)]
    }

    fn slot(&mut self, due: Instant) -> Option<&mut (u32, u32)> {
        let slot = due.saturating_duration_since(self.start).as_nanos() / SLOT.as_nanos();
        self.slots.get_mut(usize::try_from(slot).ok()?)
    }
}

/// Returns the seconds at which phases end, none later than `whole`. The last one lasts until then.
fn ends(phases: &[Phase], whole: f64) -> Vec<f64> {
    let mut ends = Vec::new();
    let mut end = 0.0;
    for phase in phases {
        end += phase.seconds;
        if end >= whole {
            break;
        }
        ends.push(end);
    }
    // The last one that begins before the end of the load lasts until then.
    if ends.len() == phases.len() {
        ends.pop();
    }
    ends.push(whole);
    ends
}

fn slot_at(seconds: f64, slots: &[(u32, u32)]) -> usize {
    let slot = Duration::from_secs_f64(seconds).as_nanos() / SLOT.as_nanos();
    usize::try_from(slot).unwrap_or(usize::MAX).min(slots.len())
}

/// Returns the first slot in which nearly all due requests were answered in time, as they were over the second from there.
fn recovered_in(slots: &[(u32, u32)]) -> Option<usize> {
    let mut seconds = slots.windows(STAYS);
    seconds.position(|second| are_in_time(&second[..1]) && are_in_time(second))
}

/// Returns whether nearly all requests that were due in `slots`, and there was one, were answered in time.
fn are_in_time(slots: &[(u32, u32)]) -> bool {
    let (mut due, mut in_time) = (0, 0);
    for slot in slots {
        due += slot.0;
        in_time += slot.1;
    }
    due > 0 && f64::from(in_time) >= NEARLY_ALL * f64::from(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(share: f64, seconds: f64) -> Phase {
        Phase { share, seconds }
    }

    #[test]
    fn phases_end_with_the_load() {
        assert_eq!(ends(&[], 3.0), [3.0]);
        assert_eq!(ends(&[phase(1.2, 2.0), phase(0.5, 9.0)], 3.0), [2.0, 3.0]);
        assert_eq!(ends(&[phase(1.2, 2.0), phase(0.5, 1.0)], 9.0), [2.0, 9.0]);
        assert_eq!(ends(&[phase(1.2, 5.0), phase(0.5, 1.0)], 3.0), [3.0]);
    }

    #[test]
    fn a_service_has_recovered_once_answers_stay_in_time() {
        let (late, good, spare) = ((10, 0), (10, 10), (10, 8));
        let slots = |parts: &[((u32, u32), usize)]| -> Vec<(u32, u32)> {
            let repeated = parts.iter().map(|(slot, times)| vec![*slot; *times]);
            repeated.collect::<Vec<_>>().concat()
        };
        assert_eq!(recovered_in(&slots(&[(good, 10)])), Some(0));
        // Two slots by luck, and late again.
        let by_luck = slots(&[(late, 5), (good, 2), (late, 6), (good, 12)]);
        assert_eq!(recovered_in(&by_luck), Some(13));
        // One hiccup of a whole second is forgiven.
        let hiccup = slots(&[(late, 3), (good, 4), (spare, 1), (good, 9)]);
        assert_eq!(recovered_in(&hiccup), Some(3));
        assert_eq!(recovered_in(&slots(&[(late, 20)])), None);
        // Less than a second is no proof.
        assert_eq!(recovered_in(&slots(&[(late, 5), (good, 9)])), None);
        assert_eq!(recovered_in(&[]), None);
    }
}
