//! Requests compute for most of their time, although no thread is busy: the same work is done again for each of them.

use ecosystem::{WaitKind, figures};

use crate::evidence::Evidence;
use crate::finding::{Finding, Level, Words};
use crate::rules::why::Why;
use crate::threads::seen::{computes, function, is_told, is_watched_request, most_frequent, place};
use crate::thresholds::{
    COMPUTED_MS, COMPUTING_REQUEST_WEIGHT, FEWEST_SAMPLES, MOST_COMPUTING, MUCH_OF_ROUTE,
};
use crate::waiting::Waiting;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    finding(evidence).into_iter().collect()
}

fn finding(evidence: &Evidence) -> Option<Finding> {
    let cpu = evidence.cpu.as_ref()?;
    let mut waits = Waiting::all(evidence).into_iter();
    let running = waits.find(|waiting| waiting.kind() == WaitKind::Running)?;
    let ms = running.ms?;
    if running.share < MUCH_OF_ROUTE || ms < COMPUTED_MS {
        return None;
    }
    let mut stacks = Vec::new();
    for stack in cpu.stacks() {
        if is_watched_request(stack) {
            stacks.push(stack);
        }
    }
    let (_, all) = most_frequent(stacks.iter().copied())?;
    stacks.retain(|stack| computes(stack));
    let (found, _) = most_frequent(stacks.into_iter())?;
    let share = found.samples as f64 / all.max(1) as f64;
    let each_ms = found.samples as f64 * cpu.period_s * 1e3 / running.ended.max(1) as f64;
    // The samples are of all routes, so the time that they stand for is compared with that of these routes.
    let is_much = share >= MOST_COMPUTING && each_ms >= COMPUTED_MS / 2.0;
    if !is_much || found.samples < FEWEST_SAMPLES || !is_told(found.most) {
        return None;
    }
    let latency = running.latency_ms.unwrap_or(ms);
    let why = Why::of(evidence, found.most);
    let words = Words {
        headline: format!(
            "{}: {} computing, most of it at {}.",
            running.routes(),
            figures::of(ms, latency),
            place(found.most)
        ),
        seen: format!(
            "{:.0} % of {all} samples of requests' CPU time are there, about {} for each request.{}",
            share * 100.0,
            figures::duration(each_ms),
            why.as_ref().map_or("", |why| why.seen.as_str())
        ),
        cause: why
            .as_ref()
            .map_or("Each request does this work.", |why| why.cause)
            .to_owned(),
        fix: why
            .as_ref()
            .map_or(
                "See in the CPU profile what it calls; do it once for all requests if they share it.",
                |why| why.fix,
            )
            .to_owned(),
    };
    let level = if why.is_some() {
        Level::Fault
    } else {
        Level::Wait
    };
    let weight = COMPUTING_REQUEST_WEIGHT;
    let see = "/debug/pprof/last?format=svg";
    let finding = Finding::of(level, "computing_request", weight, see, words);
    Some(finding.at(function(found.most).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::{both_sides, cpu_samples, evidence, place, route};
    use crate::threads::testing::{WORKER, runs};

    const PROBE: &str = "await_profile::probe::Probe::poll";

    /// Requests that run for so many milliseconds each, a share of their time, with so many samples at one place of 100.
    fn running(ms: f64, share: f64, samples: u64) -> Evidence {
        let in_flight = 0.2;
        let finished = in_flight * share * 10_000.0 / ms;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut evidence = evidence(
            &[route("GET /page", in_flight, finished as u64)],
            &[place("GET /page", &["(running)"], in_flight * share)],
        );
        let stacks = vec![
            runs(
                samples,
                &[
                    WORKER,
                    PROBE,
                    "shop::settings",
                    "hashbrown::map::HashMap::clone",
                ],
            ),
            runs(
                100 - samples,
                &[
                    WORKER,
                    PROBE,
                    "shop::page",
                    "tokio::net::TcpStream::poll_write",
                ],
            ),
        ];
        evidence.cpu = Some(Arc::new(cpu_samples(stacks)));
        evidence
    }

    #[test]
    fn work_of_each_request_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, COMPUTED_MS, |ms| running(ms, 0.9, 90));
        both_sides(look, MUCH_OF_ROUTE, |share| running(1.0, share, 90));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        both_sides(look, MOST_COMPUTING, |share| {
            running(1.0, 0.9, (100.0 * share) as u64)
        });
        let found = look(&running(1.0, 0.9, 90)).remove(0);
        assert!(
            found
                .headline
                .starts_with("GET /page: 1.00 of 1.11 ms computing, most of it at shop::settings."),
            "{found:?}"
        );
    }

    #[test]
    fn work_of_others_and_of_few_samples_is_none() {
        let mut few = running(1.0, 0.9, 90);
        let stacks = |function, samples| {
            let stacks = vec![runs(samples, &[WORKER, function, "shop::settings"])];
            Some(Arc::new(cpu_samples(stacks)))
        };
        for (function, samples, is_told) in [
            (PROBE, 100, true),
            ("tokio::runtime::task::raw::poll", 100, false),
        ] {
            few.cpu = stacks(function, samples);
            assert_eq!(!look(&few).is_empty(), is_told, "{function}");
        }
        // A fifth of a CPU for 10 s are more samples than this: so few may be chance.
        few.cpu = stacks(PROBE, FEWEST_SAMPLES - 1);
        assert!(look(&few).is_empty());
    }
}
