//! Requests compute for most of their time, although no thread is busy: the same work is done again for each of them.

use ecosystem::{WaitKind, figures};

use super::table;
use super::why::Why;
use crate::evidence::Frame;
use crate::facts::Facts;
use crate::finding::{Advice, Row, Sighting};
use crate::threads::seen::{
    Spot, computes, function_at, is_told, is_watched_request, most_frequent, place,
};
use crate::thresholds::{COMPUTED_MS, FEWEST_SAMPLES, MOST_COMPUTING, MUCH_OF_ROUTE};

/// Requests that compute for most of their time.
pub(crate) struct ComputingRequests {
    routes: String,
    ms: f64,
    latency_ms: f64,
    function: Frame,
    at: Spot,
    /// Share of the samples at that function.
    share: f64,
    samples: u64,
    /// CPU time there for each request, in milliseconds.
    each_ms: f64,
    why: Option<Why>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<ComputingRequests> {
    let cpu = facts.evidence.cpu.as_deref()?;
    let running = facts.waits_of(WaitKind::Running).next()?;
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
    let (_, samples) = most_frequent(stacks.iter().copied())?;
    stacks.retain(|stack| computes(stack));
    let (found, _) = most_frequent(stacks.into_iter())?;
    let share = found.samples as f64 / samples.max(1) as f64;
    let each_ms = found.samples as f64 * cpu.period_s * 1e3 / running.ended.max(1) as f64;
    // The samples are of all routes, so the time that they stand for is compared with that of these routes.
    let is_much = share >= MOST_COMPUTING && each_ms >= COMPUTED_MS / 2.0;
    if !is_much || found.samples < FEWEST_SAMPLES || !is_told(found.most) {
        return None;
    }
    Some(ComputingRequests {
        routes: running.routes(),
        ms,
        latency_ms: running.latency_ms.unwrap_or(ms),
        function: function_at(found.most),
        at: place(found.most),
        share,
        samples,
        each_ms,
        why: Why::of(facts.evidence, found.most),
    })
}

impl Sighting for ComputingRequests {
    fn row(&self) -> &'static Row {
        if self.why.as_ref().is_some_and(Why::is_avoidable) {
            table::COMPUTED_AGAIN
        } else {
            table::COMPUTED_EACH
        }
    }

    fn advice(&self) -> Option<Advice> {
        self.why.as_ref().map(Why::advice)
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.function.clone()]
    }

    fn headline(&self) -> String {
        format!(
            "{}: {} computing, most of it at {}.",
            self.routes,
            figures::of(self.ms, self.latency_ms),
            self.at
        )
    }

    fn seen(&self) -> String {
        let seen = format!(
            "{:.0} % of {} samples of requests' CPU time are there, about {} for each request.",
            self.share * 100.0,
            self.samples,
            figures::duration(self.each_ms)
        );
        match self.why.as_ref().and_then(Why::seen) {
            Some(why) => format!("{seen} {why}"),
            None => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, cpu_samples, evidence, place, route};
    use crate::threads::testing::{WORKER, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
