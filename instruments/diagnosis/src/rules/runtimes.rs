//! A blocking pool is full, ticks are late, or runtimes of one kind are loaded unevenly.

use super::table;
use crate::evidence::{Evidence, Runtime};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::ThreadProfile;
use crate::threads::seen::{Spot, is_block_on, place};
use crate::thresholds::{
    LATE, POOL_UNANSWERED, POOL_WAIT, POOL_WAIT_P50, UNANSWERED, UNEVEN_BUSY, UNEVEN_IDLE,
};

/// A runtime whose jobs wait for a blocking thread.
pub(crate) struct FullPool {
    runtime: String,
    /// Longest wait of a job, in seconds.
    waited: f64,
    /// Where most of the pool's busy threads are, and their state.
    at: Option<(Spot, String)>,
    /// True if they wait there for a future to end.
    blocks_on: bool,
}

pub(crate) fn full_blocking_pools(facts: &Facts<'_>) -> Vec<FullPool> {
    let mut full = Vec::new();
    for runtime in &facts.evidence.runtimes {
        let waited = runtime.blocking_wait_worst.max(runtime.blocking_unanswered);
        let is_usual = runtime.blocking_wait_p50 >= POOL_WAIT_P50
            || runtime.blocking_unanswered >= POOL_UNANSWERED;
        if waited < POOL_WAIT || !is_usual {
            continue;
        }
        let threads = facts.evidence.threads.as_deref();
        let busy = threads.and_then(ThreadProfile::on_blocking_threads);
        full.push(FullPool {
            runtime: runtime.name.clone(),
            waited,
            blocks_on: busy.as_ref().is_some_and(|busy| is_block_on(busy.most)),
            at: busy.map(|busy| (place(busy.most), busy.text())),
        });
    }
    full
}

impl Sighting for FullPool {
    fn row(&self) -> &'static Row {
        if self.blocks_on {
            table::FULL_POOL_BLOCKS_ON
        } else {
            table::FULL_POOL
        }
    }

    fn headline(&self) -> String {
        format!("The blocking pool of the runtime {} is full.", self.runtime)
    }

    fn seen(&self) -> String {
        let seen = format!("A job waited {:.0} ms for a thread.", self.waited * 1e3);
        match &self.at {
            Some((at, state)) => format!("{seen} Its threads are at {at} ({state})."),
            None => seen,
        }
    }
}

/// A runtime whose tasks begin late. Where threads were seen, they say why.
pub(crate) struct LateTasks {
    runtime: String,
    seconds: f64,
}

pub(crate) fn late(facts: &Facts<'_>) -> Option<LateTasks> {
    let latest = facts.evidence.runtimes.iter();
    let latest = latest.max_by(|a, b| a.late_p99.total_cmp(&b.late_p99))?;
    let is_late = latest.late_p99 >= LATE || latest.unanswered >= UNANSWERED;
    if !is_late || facts.evidence.threads.is_some() {
        return None;
    }
    Some(LateTasks {
        runtime: latest.name.clone(),
        seconds: latest.late_p99.max(latest.unanswered),
    })
}

impl Sighting for LateTasks {
    fn row(&self) -> &'static Row {
        table::LATE
    }

    fn headline(&self) -> String {
        format!(
            "A task of the runtime {} began up to {:.2} s late.",
            self.runtime, self.seconds
        )
    }

    fn seen(&self) -> String {
        String::new()
    }
}

/// Runtimes of one kind, of which one is busy and another one idle.
pub(crate) struct UnevenRuntimes {
    busiest: String,
    idlest: String,
    /// All runtimes, each with its busy share.
    busy: Vec<(String, f64)>,
}

pub(crate) fn uneven(facts: &Facts<'_>) -> Option<UnevenRuntimes> {
    let evidence = facts.evidence;
    let (busiest, busy) = by_busy(evidence).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let alike = by_busy(evidence).filter(|(runtime, _)| kind(runtime) == kind(busiest));
    let (idlest, idle) = alike.min_by(|a, b| a.1.total_cmp(&b.1))?;
    if busy < UNEVEN_BUSY || idle > UNEVEN_IDLE || busiest.name == idlest.name {
        return None;
    }
    let mut all = Vec::new();
    for (runtime, busy) in by_busy(evidence) {
        all.push((runtime.name.clone(), busy));
    }
    Some(UnevenRuntimes {
        busiest: busiest.name.clone(),
        idlest: idlest.name.clone(),
        busy: all,
    })
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

impl Sighting for UnevenRuntimes {
    fn row(&self) -> &'static Row {
        table::UNEVEN
    }

    fn headline(&self) -> String {
        format!(
            "The runtime {} is busy while {} is idle: their load is uneven.",
            self.busiest, self.idlest
        )
    }

    fn seen(&self) -> String {
        let mut shares = Vec::new();
        for (runtime, busy) in &self.busy {
            shares.push(format!("{runtime} {:.0} %", busy * 100.0));
        }
        format!("Busy: {}.", shares.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, of_threads};
    use crate::threads::Thread;
    use crate::threads::testing::{BLOCKING, LOCK, in_call};

    fn full_blocking_pool(evidence: &Evidence) -> Vec<Finding> {
        told(super::full_blocking_pools(&Facts::of(evidence)))
    }

    fn late(evidence: &Evidence) -> Vec<Finding> {
        told(super::late(&Facts::of(evidence)))
    }

    fn uneven(evidence: &Evidence) -> Vec<Finding> {
        told(super::uneven(&Facts::of(evidence)))
    }

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
