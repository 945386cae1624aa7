//! Now and then a thread that runs requests does not yield for long: shares of the time hardly show that.

use ecosystem::{WaitKind, figures};

use crate::evidence::Evidence;
use crate::finding::{Finding, Words};
use crate::threads::seen::work_at;
use crate::threads::{Hold, Stack};
use crate::thresholds::{BUSY, HELD_LONG, HOLD_MOMENTS, RARE_HOLD_WEIGHT};
use crate::waiting::parts;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let Some(threads) = &evidence.threads else {
        return Vec::new();
    };
    if evidence.held() < HELD_LONG {
        return Vec::new();
    }
    let mut holds: Vec<&Hold> = Vec::new();
    for thread in threads.run_requests() {
        holds.extend(&thread.holds);
    }
    // Samples of the CPU time see shorter holds than those of threads.
    if let Some(cpu) = &evidence.cpu {
        for thread in cpu.run_requests() {
            holds.extend(&thread.holds);
        }
    }
    holds.retain(|hold| hold.moments >= HOLD_MOMENTS && hold.cpu_s >= HELD_LONG / 2.0);
    let longest = holds.iter().max_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    let Some(found) = longest else {
        return Vec::new();
    };
    let mut seen = format!(
        "It was seen there for {:.0} ms of CPU time, in {} moments without a pause.",
        found.cpu_s * 1e3,
        found.moments
    );
    if let Some((route, ms)) = slow_route(evidence) {
        seen = format!(
            "{seen} {route} takes {}, most of it on a thread.",
            figures::duration(ms)
        );
    }
    let mut busiest = 0.0_f64;
    for thread in threads.run_requests() {
        busiest = busiest.max(thread.running);
    }
    let when = if busiest < BUSY {
        "Now and then"
    } else {
        "Often"
    };
    let held_by = parts(&found.place).map(|(function, ..)| function);
    let mut stacks: Vec<&Stack> = Vec::new();
    stacks.extend(threads.stacks());
    if let Some(cpu) = &evidence.cpu {
        stacks.extend(cpu.stacks());
    }
    let work = held_by.and_then(|function| work_at(&stacks, function));
    let words = Words {
        headline: format!("{when} a thread that runs requests does not yield: at {}.", found.place),
        seen,
        cause: work
            .map_or("It computes for long in an async function, and all else that its thread has to poll waits.", |work| {
                work.cause
            })
            .to_owned(),
        fix: work
            .map_or("Do it on a blocking thread (`tokio::task::spawn_blocking`), or in parts.", |work| work.fix)
            .to_owned(),
    };
    let finding = Finding::fault("rare_hold", RARE_HOLD_WEIGHT, "/debug/threads", words);
    vec![finding.at(held_by.unwrap_or_default())]
}

/// The slowest of the routes whose requests are mostly being polled.
fn slow_route(evidence: &Evidence) -> Option<(&str, f64)> {
    let requests = evidence.requests.as_ref()?;
    let mut slowest: Option<(&str, f64)> = None;
    for route in requests.whole() {
        let mut running = 0.0;
        for place in &requests.places {
            if place.route == route.name && place.kind() == Some(WaitKind::Running) {
                running += place.in_flight;
            }
        }
        let Some(ms) = route.mean_ms(evidence.seconds) else {
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
    slowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, cpu_samples, of_threads};
    use crate::threads::testing::{WORKER, runs};
    use crate::threads::{Hold, Stack, State, Thread};

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
            place: "shop::metrics (src/metrics.rs:24)".to_owned(),
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
                place: "shop::refresh (src/table.rs:34)".to_owned(),
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
