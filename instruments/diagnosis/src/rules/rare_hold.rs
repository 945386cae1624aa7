//! Now and then a thread that runs requests does not yield for long: shares of the time hardly show that.

use ecosystem::{WaitKind, Work, figures};

use super::table;
use crate::evidence::Frame;
use crate::facts::Facts;
use crate::finding::{Advice, Row, Sighting};
use crate::threads::Hold;
use crate::threads::seen::{only_awaits, work_at};
use crate::thresholds::{BUSY, HELD_LONG, HOLD_MOMENTS};

/// A thread that runs requests and did not yield for long.
pub(crate) struct LongHold {
    hold: Hold,
    /// True if such threads mostly compute.
    is_often: bool,
    /// The slowest of the routes whose requests are mostly being polled, and its mean time in milliseconds.
    slow_route: Option<(String, f64)>,
    work: Option<&'static Work>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<LongHold> {
    let threads = facts.evidence.threads.as_deref()?;
    if facts.held_s < HELD_LONG {
        return None;
    }
    let mut holds: Vec<&Hold> = Vec::new();
    let mut busiest = 0.0_f64;
    for thread in threads.run_requests() {
        holds.extend(&thread.holds);
        busiest = busiest.max(thread.running);
    }
    // Samples of the CPU time see shorter holds than those of threads.
    if let Some(cpu) = &facts.evidence.cpu {
        for thread in cpu.run_requests() {
            holds.extend(&thread.holds);
        }
    }
    holds.retain(|hold| hold.moments >= HOLD_MOMENTS && hold.cpu_s >= HELD_LONG / 2.0);
    let stacks = facts.evidence.stacks();
    // Many short turns at one line look like a long one.
    holds.retain(|hold| {
        let function = hold.place.function();
        !function.is_some_and(|function| only_awaits(&stacks, function))
    });
    let longest = holds.iter().max_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    let hold = Hold::clone(longest?);
    let function = hold.place.line().map(|line| line.function.as_str());
    Some(LongHold {
        work: function.and_then(|function| work_at(&stacks, function)),
        is_often: busiest >= BUSY,
        slow_route: slow_route(facts),
        hold,
    })
}

fn slow_route(facts: &Facts<'_>) -> Option<(String, f64)> {
    let requests = facts.requests?;
    let mut slowest: Option<(&str, f64)> = None;
    for route in requests.whole() {
        let mut running = 0.0;
        for place in &requests.places {
            if place.route == route.name && place.kind() == Some(WaitKind::Running) {
                running += place.in_flight;
            }
        }
        let Some(ms) = route.mean_ms(facts.evidence.seconds) else {
            continue;
        };
        let is_slow = ms >= HELD_LONG * 1e3;
        if is_slow
            && running * 2.0 >= route.in_flight
            && slowest.is_none_or(|(_, other)| ms > other)
        {
            slowest = Some((&route.name, ms));
        }
    }
    slowest.map(|(route, ms)| (route.to_owned(), ms))
}

impl Sighting for LongHold {
    fn row(&self) -> &'static Row {
        table::RARE_HOLD
    }

    fn advice(&self) -> Option<Advice> {
        self.work.map(|work| Advice {
            cause: work.cause,
            fix: work.fix,
        })
    }

    fn places(&self) -> Vec<Frame> {
        let function = self.hold.place.function().unwrap_or_default();
        vec![Frame::Function(function.to_owned())]
    }

    fn headline(&self) -> String {
        let when = if self.is_often {
            "Often"
        } else {
            "Now and then"
        };
        let at = &self.hold.place;
        format!("{when} a thread that runs requests does not yield: at {at}.")
    }

    fn seen(&self) -> String {
        let seen = format!(
            "It was seen there for {:.0} ms of CPU time, in {} moments without a pause.",
            self.hold.cpu_s * 1e3,
            self.hold.moments
        );
        match &self.slow_route {
            Some((route, ms)) => format!(
                "{seen} {route} takes {}, most of it on a thread.",
                figures::duration(*ms)
            ),
            None => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, cpu_samples, of_threads};
    use crate::threads::testing::{WORKER, runs};
    use crate::threads::{Hold, Stack, State, Thread};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    fn of(held: f64, moments: u64, cpu_s: f64) -> Evidence {
        let mut worker = Thread::of(
            "tokio worker",
            vec![
                runs(20, &[WORKER, "shop::metrics"]),
                Stack::of(900, State::Idle, &[WORKER]),
            ],
        );
        worker.holds = vec![Hold {
            moments,
            cpu_s,
            place: crate::testing::frames(&["shop::metrics (src/metrics.rs:24)"]).remove(0),
        }];
        of_threads(vec![worker], held)
    }

    #[test]
    fn a_rare_hold_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, HELD_LONG, |held| of(held, 5, 0.1));
        both_sides(look, HELD_LONG / 2.0, |cpu_s| of(1.0, 5, cpu_s));
        assert!(look(&of(1.0, HOLD_MOMENTS - 1, 0.1)).is_empty());
        let found = look(&of(1.0, HOLD_MOMENTS, 0.1)).remove(0);
        assert!(found.headline.contains("src/metrics.rs:24"), "{found:?}");
    }

    #[test]
    fn a_hold_that_only_samples_of_the_cpu_time_see_is_told() {
        let with = |cpu_s: f64, is_runtime| {
            let mut evidence = of(1.0, 0, 0.0);
            let mut samples = cpu_samples(vec![runs(5, &[WORKER, "shop::refresh"])]);
            samples.threads[0].is_runtime = is_runtime;
            samples.threads[0].holds = vec![Hold {
                moments: 4,
                cpu_s,
                place: crate::testing::frames(&["shop::refresh (src/table.rs:34)"]).remove(0),
            }];
            evidence.cpu = Some(std::sync::Arc::new(samples));
            evidence
        };
        both_sides(look, HELD_LONG / 2.0, |cpu_s| with(cpu_s, true));
        assert!(look(&with(1.0, false)).is_empty(), "a blocking thread");
    }

    #[test]
    fn now_and_then_is_said_of_a_thread_that_mostly_does_something_else() {
        let headline = |running| {
            let mut evidence = of(1.0, 5, 0.1);
            let mut threads = of_threads(Vec::new(), 1.0).threads.unwrap();
            let profile = std::sync::Arc::get_mut(&mut threads).unwrap();
            let mut worker = Thread::of("tokio worker", vec![runs(20, &[WORKER, "shop::metrics"])]);
            worker.running = running;
            worker.holds = evidence.threads.as_ref().unwrap().threads[0].holds.clone();
            // Idle otherwise, and in many places: neither rule on computing tells it.
            worker.stacks = vec![Stack::of(900, State::Idle, &[WORKER])];
            profile.threads = vec![worker];
            evidence.threads = Some(threads);
            look(&evidence).remove(0).headline
        };
        assert!(headline(BUSY * 0.99).starts_with("Now and then"));
        assert!(headline(BUSY).starts_with("Often"));
    }
}
