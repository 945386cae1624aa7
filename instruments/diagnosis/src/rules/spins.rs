//! A task that yields and is ready again at once: it asks in a loop whether there is something to do.

use ecosystem::{WaitKind, kinds};

use super::table;
use crate::evidence::{Frame, Step, StepKind};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::{SPINNING, SPINNING_CPUS};

/// A line at which tasks wait for nothing but their next turn.
pub(crate) struct Spins<'a> {
    step: &'a Step,
    /// Share of the snapshots in which one did.
    share: f64,
    cpus_used: f64,
}

pub(crate) fn check<'a>(facts: &'a Facts<'_>) -> Option<Spins<'a>> {
    let tasks = facts.evidence.tasks.as_ref()?;
    let mut ways = tasks.ways.iter();
    // The most frequent way comes first.
    let way = ways.find(|way| way.first().is_some_and(is_next_turn))?;
    let share = way.seen / f64::from(tasks.snapshots.max(1));
    let cpus_used = facts.evidence.cpus_used;
    if share < SPINNING || cpus_used < SPINNING_CPUS {
        return None;
    }
    Some(Spins {
        step: way.first()?,
        share,
        cpus_used,
    })
}

/// Returns whether a task waits although it could go on.
fn is_next_turn(step: &Step) -> bool {
    let mut through = step.through.iter();
    let yields = through.any(|function| {
        kinds::wait(function).is_some_and(|wait| wait.kind == WaitKind::Ready.name())
    });
    step.kind == StepKind::Of(WaitKind::Ready) && yields
}

impl Sighting for Spins<'_> {
    fn row(&self) -> &'static Row {
        table::SPINS
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.step.frame()]
    }

    fn headline(&self) -> String {
        format!(
            "A task yields and is ready again at once, at {}.",
            self.step.place()
        )
    }

    fn seen(&self) -> String {
        format!(
            "{:.1} such tasks were there in each snapshot; the process uses {:.2} CPUs.",
            self.share, self.cpus_used
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Tasks, Way};
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, evidence};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    fn polls(seen: f64, cpus_used: f64, kind: WaitKind) -> Evidence {
        let step = Step {
            at: Some("shop::next (src/queue.rs:33)".to_owned()),
            kind: StepKind::Of(kind),
            through: vec!["tokio::task::yield_now::yield_now".to_owned()],
            ..Step::default()
        };
        let mut evidence = evidence(&[], &[]);
        evidence.cpus_used = cpus_used;
        evidence.tasks = Some(Tasks {
            snapshots: 10,
            ways: vec![Way {
                seen,
                ends: 10,
                steps: vec![step],
            }],
            ..Tasks::default()
        });
        evidence
    }

    #[test]
    fn a_loop_that_yields_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, SPINNING, |share| {
            polls(share * 10.0, 0.8, WaitKind::Ready)
        });
        both_sides(look, SPINNING_CPUS, |cpus| {
            polls(9.0, cpus, WaitKind::Ready)
        });
        let found = look(&polls(9.0, 0.8, WaitKind::Ready)).remove(0);
        assert!(
            found.headline.contains("shop::next (src/queue.rs:33)"),
            "{found:?}"
        );
        assert!(look(&polls(9.0, 0.8, WaitKind::Timer)).is_empty());
    }
}
