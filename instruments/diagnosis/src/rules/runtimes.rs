//! A blocking pool is full, ticks are late, or runtimes of one kind are loaded unevenly.

use crate::evidence::{Evidence, Runtime};
use crate::finding::{Finding, Words};
use crate::thresholds::{
    FULL_POOL_WEIGHT, LATE, LATE_WEIGHT, POOL_UNANSWERED, POOL_WAIT, POOL_WAIT_P50, UNANSWERED,
    UNEVEN_BUSY, UNEVEN_IDLE, UNEVEN_WEIGHT,
};

/// A job waits for a blocking thread.
pub(crate) fn full_blocking_pool(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    for runtime in &evidence.runtimes {
        let waited = runtime.blocking_wait_worst.max(runtime.blocking_unanswered);
        let is_usual = runtime.blocking_wait_p50 >= POOL_WAIT_P50
            || runtime.blocking_unanswered >= POOL_UNANSWERED;
        if waited < POOL_WAIT || !is_usual {
            continue;
        }

        let mut seen = format!("A job waited {:.0} ms for a thread.", waited * 1e3);
        let mut cause = "Long jobs have all its threads; `spawn_blocking`, `tokio::fs` and name lookups wait for one.";
        let mut fix = "Bound those jobs by a semaphore of their own, or make them shorter, before you blame the disk.";
        if let Some(threads) = &evidence.threads
            && let Some(place) = threads.at_work_on_blocking_threads()
        {
            seen = format!("{seen} Its threads are at {place}.");
            if threads.do_blocking_threads_block_on() {
                cause = "`block_on` keeps its thread until the future ends, and what the future waits for needs a thread, too.";
                fix = "Make the function async and await the future. If it has to block, bound how many do so at once.";
            }
        }
        let words = Words {
            headline: format!("The blocking pool of the runtime {} is full.", runtime.name),
            seen,
            cause: cause.to_owned(),
            fix: fix.to_owned(),
        };
        let kind = "full_blocking_pool";
        findings.push(Finding::fault(
            kind,
            FULL_POOL_WEIGHT,
            "/debug/threads",
            words,
        ));
    }
    findings
}

/// A task begins late. Where threads were seen, they say why.
pub(crate) fn late(evidence: &Evidence) -> Vec<Finding> {
    let latest = evidence.runtimes.iter();
    let latest = latest.max_by(|a, b| a.late_p99.total_cmp(&b.late_p99));
    let (Some(latest), None) = (latest, &evidence.threads) else {
        return Vec::new();
    };
    if latest.late_p99 < LATE && latest.unanswered < UNANSWERED {
        return Vec::new();
    }
    let late = latest.late_p99.max(latest.unanswered);
    let words = Words {
        headline: format!(
            "A task of the runtime {} began up to {late:.2} s late.",
            latest.name
        ),
        cause: "Something blocks or keeps the threads of the runtime.".to_owned(),
        ..Words::default()
    };
    vec![Finding::fault(
        "late",
        LATE_WEIGHT,
        "/debug/heartbeat",
        words,
    )]
}

/// One runtime is busy, and another one of its kind idle.
pub(crate) fn uneven(evidence: &Evidence) -> Vec<Finding> {
    let busiest = by_busy(evidence).max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((busiest, busy)) = busiest else {
        return Vec::new();
    };
    let alike = by_busy(evidence).filter(|(runtime, _)| kind(runtime) == kind(busiest));
    let idlest = alike.min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((idlest, idle)) = idlest else {
        return Vec::new();
    };
    if busy < UNEVEN_BUSY || idle > UNEVEN_IDLE || busiest.name == idlest.name {
        return Vec::new();
    }
    let mut shares = Vec::new();
    for (runtime, busy) in by_busy(evidence) {
        shares.push(format!("{} {:.0} %", runtime.name, busy * 100.0));
    }
    let words = Words {
        headline: format!(
            "The runtime {} is busy while {} is idle: their load is uneven.",
            busiest.name, idlest.name
        ),
        seen: format!("Busy: {}.", shares.join(", ")),
        cause: "Few connections have most of the requests, and each stays on the runtime that accepted it.".to_owned(),
        fix: "Use one runtime with several workers, or hand connections to the runtime with the fewest requests.".to_owned(),
    };
    vec![Finding::fault(
        "uneven_runtimes",
        UNEVEN_WEIGHT,
        "/debug/heartbeat",
        words,
    )]
}

fn by_busy(evidence: &Evidence) -> impl Iterator<Item = (&Runtime, f64)> {
    let runtimes = evidence.runtimes.iter();
    runtimes.filter_map(|runtime| Some((runtime, runtime.busy?)))
}

/// Runtimes of one kind have one name, but for a number, and as many workers.
fn kind(runtime: &Runtime) -> (&str, usize) {
    let name = &runtime.name;
    let name =
        name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '-' | '_' | ':'));
    (name, runtime.held_worst.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, of_threads};
    use crate::threads::Thread;
    use crate::threads::testing::{BLOCKING, LOCK, in_call};

    fn of(runtimes: Vec<Runtime>) -> Evidence {
        Evidence {
            runtimes,
            ..Evidence::default()
        }
    }

    #[test]
    fn a_pool_is_full_on_the_right_side_of_each_threshold() {
        let pool = |worst, p50, unanswered| {
            of(vec![Runtime {
                blocking_wait_worst: worst,
                blocking_wait_p50: p50,
                blocking_unanswered: unanswered,
                ..Runtime::default()
            }])
        };
        both_sides(full_blocking_pool, POOL_WAIT, |worst| pool(worst, 1.0, 0.0));
        both_sides(full_blocking_pool, POOL_WAIT_P50, |p50| pool(1.0, p50, 0.0));
        both_sides(full_blocking_pool, POOL_UNANSWERED, |time| {
            pool(0.0, 0.0, time)
        });
    }

    #[test]
    fn threads_that_wait_for_a_future_are_told_from_long_jobs() {
        let cause = |call: &str| {
            let stack = in_call(90, "futex", &[BLOCKING, "shop::sign", call]);
            let job = Thread::of(ecosystem::Role::Blocking.name(), vec![stack]);
            let mut evidence = of_threads(vec![job], 0.0);
            evidence.runtimes[0].blocking_unanswered = 5.0;
            full_blocking_pool(&evidence).remove(0).cause
        };
        let blocks_on = "tokio::runtime::handle::Handle::block_on";
        assert!(cause(blocks_on).starts_with("`block_on` keeps its thread"));
        assert!(cause(LOCK).starts_with("Long jobs"));
    }

    #[test]
    fn a_runtime_is_late_on_the_right_side_of_each_threshold() {
        let beat = |late_p99, unanswered| {
            of(vec![Runtime {
                late_p99,
                unanswered,
                ..Runtime::default()
            }])
        };
        both_sides(late, LATE, |time| beat(time, 0.0));
        both_sides(late, UNANSWERED, |time| beat(0.0, time));
    }

    #[test]
    fn runtimes_are_uneven_on_the_right_side_of_each_threshold() {
        let runtime = |name: &str, busy| Runtime {
            name: name.to_owned(),
            busy: Some(busy),
            held_worst: vec![0.0],
            ..Runtime::default()
        };
        both_sides(uneven, UNEVEN_BUSY, |busy| {
            of(vec![runtime("core-1", busy), runtime("core-2", 0.0)])
        });
        // The less idle, the less uneven.
        both_sides(uneven, 1.0 / UNEVEN_IDLE, |reciprocal| {
            of(vec![
                runtime("core-1", 0.9),
                runtime("core-2", 1.0 / reciprocal),
            ])
        });
        let other = of(vec![runtime("core-1", 0.9), runtime("mail", 0.0)]);
        assert!(uneven(&other).is_empty(), "a runtime for something else");
    }
}
