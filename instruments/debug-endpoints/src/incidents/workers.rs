//! Workers of a runtime that do not yield, as a state machine.

use std::time::Duration;

use crate::incidents::condition::{Change, Condition, Cpu};

/// One worker: for how long it has not yielded.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// All of that time.
    seen: Duration,
    /// The part of it for which the machine was seen to have a CPU for it.
    own: Duration,
    /// True if the machine had no CPU for it in some of that time.
    has_lacked_cpu: bool,
}

/// Workers of one runtime.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workers {
    held: Vec<Held>,
    condition: Condition,
}

impl Workers {
    /// Takes a look at all workers after a step of `length`: `is_held` says for each whether it was awake and did not
    /// yield since the look before. `late` is the time for which it may do so.
    pub(crate) fn observe(
        &mut self,
        is_held: &[bool],
        length: Duration,
        cpu: Cpu,
        late: Duration,
    ) -> Change {
        self.held.resize(is_held.len(), Held::default());
        let mut lacked_cpu = false;
        for (held, is_held) in self.held.iter_mut().zip(is_held) {
            if !is_held {
                // It was late, and not of its own doing.
                lacked_cpu |= held.seen >= late && held.own < late && held.has_lacked_cpu;
                *held = Held::default();
                continue;
            }
            held.seen += length;
            match cpu {
                Cpu::NotAsked => {}
                Cpu::Had => held.own += length,
                Cpu::Lacked => {
                    held.has_lacked_cpu = true;
                    if held.own < late {
                        held.own = Duration::ZERO;
                    }
                }
            }
        }
        // Both looks of a condition are in the time for which a worker is held.
        let is_out = self.late(late) > 0;
        if is_out && self.condition == Condition::Usual {
            self.condition = Condition::suspected();
        }
        let cpu = if is_out { Cpu::Had } else { cpu };
        match self.condition.observe(is_out, cpu) {
            Change::Nothing if lacked_cpu => Change::LacksCpu,
            change => change,
        }
    }

    /// Returns whether it has to be known for the next step if the machine has a CPU for the service.
    pub(crate) fn is_suspicious(&self, late: Duration) -> bool {
        self.held
            .iter()
            .any(|held| held.seen >= late / 2 && held.own < late)
    }

    /// Returns the number of workers that have not yielded for `late`.
    pub(crate) fn late(&self, late: Duration) -> usize {
        self.held.iter().filter(|held| held.own >= late).count()
    }

    /// Returns the number of workers.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns for how long each worker has not yielded.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.held.iter().map(|held| held.seen).collect()
    }

    /// Records that the incident was recorded.
    pub(crate) fn set_recorded(&mut self) {
        self.condition.set_recorded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(25);
    const LATE: Duration = Duration::from_millis(50);

    /// Takes steps of two workers: whether the first is held, and whether it had a CPU.
    fn seen(steps: &[(bool, Cpu)]) -> Vec<Change> {
        let mut workers = Workers::default();
        let steps = steps.iter();
        let seen =
            steps.map(|(is_held, cpu)| workers.observe(&[*is_held, false], STEP, *cpu, LATE));
        seen.collect()
    }

    #[test]
    fn one_worker_of_two_is_enough_and_the_incident_lasts_until_it_yields() {
        let changes = seen(&[
            (true, Cpu::NotAsked),
            (true, Cpu::Had),
            (true, Cpu::Had),
            (true, Cpu::Had),
            (false, Cpu::NotAsked),
        ]);
        assert_eq!(
            changes[1..],
            [
                Change::Nothing,
                Change::Begins,
                Change::GoesOn,
                Change::Ends
            ]
        );
    }

    #[test]
    fn time_that_nobody_has_measured_is_never_enough() {
        let changes = seen(&[(true, Cpu::NotAsked); 9]);
        assert!(changes.iter().all(|change| *change == Change::Nothing));
    }

    #[test]
    fn a_worker_without_a_cpu_is_no_incident_and_is_counted_once() {
        let mut steps = vec![(true, Cpu::NotAsked)];
        steps.extend([(true, Cpu::Lacked); 8]);
        steps.push((false, Cpu::NotAsked));
        steps.push((false, Cpu::NotAsked));
        let changes = seen(&steps);
        let counted = changes.iter().filter(|change| **change == Change::LacksCpu);
        assert_eq!(counted.count(), 1, "{changes:?}");
        assert!(!changes.contains(&Change::Begins), "{changes:?}");
    }

    #[test]
    fn what_is_held_in_spite_of_a_busy_machine_is_an_incident() {
        let changes = seen(&[
            (true, Cpu::NotAsked),
            (true, Cpu::Lacked),
            (true, Cpu::Had),
            (true, Cpu::Had),
        ]);
        assert_eq!(changes.last(), Some(&Change::Begins));
    }
}
