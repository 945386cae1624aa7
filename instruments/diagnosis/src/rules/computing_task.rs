//! Tasks that serve no request compute on the threads of the runtime, such as those of `WebSockets`.

use crate::evidence::Evidence;
use crate::finding::{Finding, Words};
use crate::threads::seen::{computes, is_other_task, is_told, most_frequent, place};
use crate::thresholds::{COMPUTING_TASK_WEIGHT, FEWEST_SAMPLES, MOST_COMPUTING, TASKS_CPUS};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    finding(evidence).into_iter().collect()
}

fn finding(evidence: &Evidence) -> Option<Finding> {
    let cpu = evidence.cpu.as_ref()?;
    let all: u64 = cpu.of_tasks().map(|stack| stack.samples).sum();
    let at_work = cpu
        .of_tasks()
        .filter(|stack| is_other_task(stack) && computes(stack));
    let (found, _) = most_frequent(at_work)?;
    let share = found.samples as f64 / all.max(1) as f64;
    let cpus = found.samples as f64 * cpu.period_s / evidence.seconds;
    let is_much = cpus >= TASKS_CPUS && share >= MOST_COMPUTING;
    if !is_much || found.samples < FEWEST_SAMPLES || !is_told(found.most) {
        return None;
    }
    let words = Words {
        headline: format!(
            "Tasks that are no requests compute at {}.",
            place(found.most)
        ),
        seen: format!(
            "They use {cpus:.2} CPUs there: {:.0} % of {all} samples of the CPU time of the runtime's threads.",
            share * 100.0
        ),
        cause:
            "Each connection, or each message, does work that could be done once for all of them."
                .to_owned(),
        fix: "Do it once and share the result, or do it on a blocking thread.".to_owned(),
    };
    let weight = COMPUTING_TASK_WEIGHT;
    let see = "/debug/pprof/last?format=svg";
    Some(Finding::fault("computing_task", weight, see, words))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::{both_sides, cpu_samples, evidence};
    use crate::threads::testing::{WORKER, runs};

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
