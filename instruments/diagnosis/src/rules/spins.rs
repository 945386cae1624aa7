//! A task that asks in a loop whether there is something to do: it yields and is ready again at once, or never yields.

use ecosystem::{WaitKind, kinds};

use super::table;
use crate::evidence::{Frame, Step, StepKind};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::Stack;
use crate::threads::seen::{
    Spot, function, function_at, is_told, most_frequent, only_awaits, place,
};
use crate::thresholds::{ALONE, FEWEST_SAMPLES, HELD_LONG, SPINNING, SPINNING_CPUS};

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

/// A task that keeps its thread, although it hardly computes: it asks a channel or a lock, such as by `try_recv`.
pub(crate) struct NeverYields {
    at: Spot,
    function: Frame,
    cpus: f64,
    held_s: f64,
}

pub(crate) fn never_yields(facts: &Facts<'_>) -> Option<NeverYields> {
    let cpu = facts.evidence.cpu.as_deref()?;
    if facts.held_s < HELD_LONG {
        return None;
    }
    // A busy thread that yields runs other tasks, too.
    for thread in cpu.threads.iter().filter(|thread| thread.is_runtime) {
        let stacks: Vec<&Stack> = thread.stacks.iter().collect();
        let Some((found, all)) = most_frequent(stacks.iter().copied()) else {
            continue;
        };
        let cpus = found.samples as f64 * cpu.period_s / facts.evidence.seconds;
        let is_alone = found.samples as f64 >= ALONE * all as f64;
        let is_much = cpus >= SPINNING_CPUS && found.samples >= FEWEST_SAMPLES && is_alone;
        let hardly_computes =
            function(found.most).is_some_and(|function| only_awaits(&stacks, function));
        if is_much && is_told(found.most) && hardly_computes {
            return Some(NeverYields {
                at: place(found.most),
                function: function_at(found.most),
                cpus,
                held_s: facts.held_s,
            });
        }
    }
    None
}

impl Sighting for NeverYields {
    fn row(&self) -> &'static Row {
        table::SPINS
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.function.clone()]
    }

    fn headline(&self) -> String {
        format!(
            "A task asks again and again at {}, and does not yield in between.",
            self.at
        )
    }

    fn seen(&self) -> String {
        format!(
            "{:.2} CPUs go to that, and a thread did not yield for {:.0} ms.",
            self.cpus,
            self.held_s * 1e3
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::{Evidence, Runtime, Tasks, Way};
    use crate::finding::Finding;
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, cpu_samples, evidence};
    use crate::threads::testing::{WORKER, runs};

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

    #[test]
    fn a_loop_that_never_yields_is_told_on_the_right_side_of_each_threshold() {
        let asks = |cpus: f64, held: f64, awaited: &str| {
            let mut evidence = evidence(&[], &[]);
            evidence.cpus_used = cpus;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let samples = (cpus * 1000.0).round() as u64;
            let stacks = vec![runs(samples, &[WORKER, "shop::drain", awaited])];
            evidence.cpu = Some(Arc::new(cpu_samples(stacks)));
            evidence.runtimes = vec![Runtime {
                held_worst: vec![held],
                ..Runtime::default()
            }];
            evidence
        };
        let asked = "tokio::sync::mpsc::bounded::Receiver<T>::try_recv";
        let is_found = |cpus, held, awaited| {
            let evidence = asks(cpus, held, awaited);
            !told(never_yields(&Facts::of(&evidence))).is_empty()
        };
        let (least, held) = (SPINNING_CPUS, HELD_LONG);
        assert!(is_found(least, 5.0, asked) && !is_found(least * 0.99, 5.0, asked));
        assert!(is_found(1.0, held, asked) && !is_found(1.0, held * 0.99, asked));
        assert!(!is_found(1.0, 5.0, "serde_json::de::from_str"));
        let found = judge(&Facts::of(&asks(1.0, 5.0, asked)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, "spins");
    }
}
