//! Tasks that serve no request compute on the threads of the runtime, such as those of `WebSockets`.

use super::table;
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::{Spot, computes, is_other_task, is_told, most_frequent, place};
use crate::thresholds::{FEWEST_SAMPLES, MOST_COMPUTING, TASKS_CPUS};

/// Computing of tasks that serve no request.
pub(crate) struct ComputingTasks {
    at: Spot,
    cpus: f64,
    /// Share of the samples of the runtime's threads.
    share: f64,
    samples: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<ComputingTasks> {
    let cpu = facts.evidence.cpu.as_deref()?;
    let samples: u64 = cpu.of_tasks().map(|stack| stack.samples).sum();
    let at_work = cpu
        .of_tasks()
        .filter(|stack| is_other_task(stack) && computes(stack));
    let (found, _) = most_frequent(at_work)?;
    let share = found.samples as f64 / samples.max(1) as f64;
    let cpus = found.samples as f64 * cpu.period_s / facts.evidence.seconds;
    let is_much = cpus >= TASKS_CPUS && share >= MOST_COMPUTING;
    if !is_much || found.samples < FEWEST_SAMPLES || !is_told(found.most) {
        return None;
    }
    Some(ComputingTasks {
        at: place(found.most),
        cpus,
        share,
        samples,
    })
}

impl Sighting for ComputingTasks {
    fn row(&self) -> &'static Row {
        table::COMPUTING_TASK
    }

    fn headline(&self) -> String {
        format!("Tasks that are no requests compute at {}.", self.at)
    }

    fn seen(&self) -> String {
        format!(
            "They use {:.2} CPUs there: {:.0} % of {} samples of the CPU time of the runtime's threads.",
            self.cpus,
            self.share * 100.0,
            self.samples
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, cpu_samples, evidence};
    use crate::threads::testing::{WORKER, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const TASK: &str = "tokio::runtime::task::raw::poll";
    const UPGRADE: &str = "axum::extract::ws::WebSocketUpgrade<F>::on_upgrade::{{closure}}";

    fn at_work(samples: u64, others: u64, frames: &[&str]) -> Evidence {
        let mut evidence = evidence(&[], &[]);
        let elsewhere = [
            WORKER,
            TASK,
            "shop::other",
            "tokio::net::TcpStream::poll_write",
        ];
        let stacks = vec![runs(samples, frames), runs(others, &elsewhere)];
        evidence.cpu = Some(Arc::new(cpu_samples(stacks)));
        evidence
    }

    #[test]
    fn a_connection_that_computes_is_told_on_the_right_side_of_each_threshold() {
        let push = [WORKER, TASK, UPGRADE, "shop::push", "serde_json::to_string"];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        both_sides(look, TASKS_CPUS * 1000.0, |samples| {
            at_work(samples as u64, 0, &push)
        });
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        both_sides(look, MOST_COMPUTING, |share| {
            let samples = (share * 1000.0) as u64;
            at_work(samples, 1000 - samples, &push)
        });
    }

    #[test]
    fn a_request_and_a_task_that_only_sends_are_none() {
        let request = [WORKER, TASK, "axum::routing::Route::call", "shop::page"];
        assert!(look(&at_work(900, 0, &request)).is_empty());
        let sends = [
            WORKER,
            TASK,
            UPGRADE,
            "shop::push",
            "tokio::net::TcpStream::poll_write",
        ];
        assert!(look(&at_work(900, 0, &sends)).is_empty());
    }
}
