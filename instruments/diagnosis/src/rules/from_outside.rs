//! Threads that are always at work, where nothing but the threads is seen: from inside, the heartbeat, the wait of jobs
//! and a CPU profile say more.

use ecosystem::{PartMeaning, Role};

use super::table;
use crate::evidence::{Evidence, View};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::{
    Spot, grouped, in_state, inner_passes, is_told, most_frequent, own, place,
};
use crate::threads::{State, Thread, ThreadProfile};
use crate::thresholds::{BUSIEST, FEWEST_SAMPLES, MANY_BLOCKING, MOST_COMPUTING, POOL_LIMIT};

fn threads(evidence: &Evidence) -> Option<&ThreadProfile> {
    let profile = evidence.threads.as_deref();
    profile.filter(|_| evidence.view == View::Outside)
}

/// A process whose threads were all stopped at every moment, as by Ctrl-Z.
pub(crate) struct Stopped;

pub(crate) fn stopped(facts: &Facts<'_>) -> Option<Stopped> {
    let profile = threads(facts.evidence)?;
    let mut stacks = profile.stacks();
    let is_stopped =
        !profile.threads.is_empty() && stacks.all(|stack| stack.state == State::Stopped);
    is_stopped.then_some(Stopped)
}

impl Sighting for Stopped {
    fn row(&self) -> &'static Row {
        table::STOPPED
    }

    fn headline(&self) -> String {
        "The process is stopped: nothing in it runs.".to_owned()
    }

    fn seen(&self) -> String {
        "All threads were stopped in all samples.".to_owned()
    }
}

/// Threads outside of any runtime that compute all the time, most of it in one function.
pub(crate) struct BusyThreads {
    at: Spot,
    /// Name of the first.
    name: String,
    threads: usize,
    /// Smallest share of the samples in which one of them ran.
    least: f64,
    cpus: f64,
}

pub(crate) fn busy_threads(facts: &Facts<'_>) -> Vec<BusyThreads> {
    let mut busy: Vec<BusyThreads> = Vec::new();
    let Some(profile) = threads(facts.evidence) else {
        return busy;
    };
    let seconds = facts.evidence.seconds.max(f64::MIN_POSITIVE);
    for thread in profile.threads.iter().filter(|thread| !thread.is_runtime) {
        let Some(at) = busy_at(thread) else { continue };
        let cpus = thread.ran_s / seconds;
        match busy.iter_mut().find(|other| other.at == at) {
            Some(others) => {
                others.threads += 1;
                others.least = others.least.min(thread.running);
                others.cpus += cpus;
            }
            None => busy.push(BusyThreads {
                at,
                name: thread.name.clone(),
                threads: 1,
                least: thread.running,
                cpus,
            }),
        }
    }
    busy
}

/// Returns the place at which a thread computes all the time, if there is one.
fn busy_at(thread: &Thread) -> Option<Spot> {
    if thread.running < BUSIEST || thread.samples < FEWEST_SAMPLES {
        return None;
    }
    let (found, all) = most_frequent(in_state(&[thread], State::Running))?;
    let share = found.samples as f64 / all.max(1) as f64;
    // A server without names that writes answers all the time is under load, and not at fault.
    let is_a_call_alone = found.most.in_call().is_some() && !is_told(found.most);
    if share < MOST_COMPUTING || is_a_call_alone {
        return None;
    }
    Some(place(found.most))
}

impl Sighting for BusyThreads {
    fn row(&self) -> &'static Row {
        table::BUSY_THREAD
    }

    fn headline(&self) -> String {
        let (name, at) = (&self.name, &self.at);
        match self.threads {
            1 => format!("The thread {name} computes all the time at {at}."),
            threads => {
                format!("{threads} threads such as {name} compute all the time at {at}.")
            }
        }
    }

    fn seen(&self) -> String {
        format!(
            "Running in at least {:.0} % of the samples, with {:.2} CPUs.",
            self.least * 100.0,
            self.cpus
        )
    }
}

/// A blocking pool whose threads have all been at work at every moment.
pub(crate) struct BusyPool {
    threads: usize,
    /// State of most of them: `blocked in read`.
    state: String,
    at: Option<Spot>,
}

pub(crate) fn busy_blocking_pool(facts: &Facts<'_>) -> Option<BusyPool> {
    let mut pool = Vec::new();
    for thread in &threads(facts.evidence)?.threads {
        if thread.is_of(Role::Blocking) {
            pool.push(thread);
        }
    }
    let are_all_busy = pool.iter().all(|thread| is_always_at_work(thread));
    if pool.len() < MANY_BLOCKING || !are_all_busy {
        return None;
    }
    let all = pool.iter().flat_map(|thread| &thread.stacks);
    let by_place = grouped(all, |stack| (place(stack), stack.state));
    let found = by_place.first()?;
    Some(BusyPool {
        threads: pool.len(),
        state: found.text(),
        at: own(found.most).map(|_| place(found.most)),
    })
}

/// Returns whether a blocking thread had a job at every moment. One that waits for messages has none.
fn is_always_at_work(thread: &Thread) -> bool {
    let mut stacks = thread.stacks.iter();
    let works = stacks.all(|stack| {
        let has_work = !matches!(stack.state, State::Idle | State::Stopped);
        has_work && !inner_passes(stack, PartMeaning::Channel)
    });
    works && thread.samples >= FEWEST_SAMPLES
}

impl Sighting for BusyPool {
    fn row(&self) -> &'static Row {
        if self.threads >= POOL_LIMIT {
            table::BUSY_POOL_AT_LIMIT
        } else {
            table::BUSY_POOL
        }
    }

    fn headline(&self) -> String {
        let at = self.at.as_ref().map(|at| format!(" at {at}"));
        format!(
            "All {} blocking threads of tokio have work all the time, most are {}{}.",
            self.threads,
            self.state,
            at.unwrap_or_default()
        )
    }

    fn seen(&self) -> String {
        format!("None was idle in any sample; a pool has {POOL_LIMIT} threads unless set.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::{Finding, Level};
    use crate::rules::told;
    use crate::testing::of_threads;
    use crate::threads::Stack;
    use crate::threads::testing::{BLOCKING, in_call, runs};

    fn stopped(evidence: &Evidence) -> Vec<Finding> {
        told(super::stopped(&Facts::of(evidence)))
    }

    fn busy_thread(evidence: &Evidence) -> Vec<Finding> {
        told(super::busy_threads(&Facts::of(evidence)))
    }

    fn busy_blocking_pool(evidence: &Evidence) -> Vec<Finding> {
        told(super::busy_blocking_pool(&Facts::of(evidence)))
    }

    fn from_outside(threads: Vec<Thread>) -> Evidence {
        let mut evidence = of_threads(threads, 0.0);
        evidence.view = View::Outside;
        evidence.runtimes.clear();
        evidence
    }

    fn busy(running: f64, samples: u64) -> Thread {
        let mut thread = Thread::of("rater", vec![runs(samples, &["shop::rate"])]);
        thread.running = running;
        thread
    }

    #[test]
    fn a_thread_that_computes_all_the_time_is_told_on_the_right_side_of_each_threshold() {
        let told = |thread| busy_thread(&from_outside(vec![thread]));
        assert!(told(busy(BUSIEST - 0.01, 100)).is_empty());
        assert!(told(busy(1.0, FEWEST_SAMPLES - 1)).is_empty());
        let found = told(busy(BUSIEST, FEWEST_SAMPLES)).remove(0);
        assert!(
            found
                .headline
                .starts_with("The thread rater computes all the time at shop::rate"),
            "{found:?}"
        );
        let mut writes = busy(1.0, 100);
        writes.stacks = vec![runs(100, &["[server+0x1234]", "__GI_writev"])];
        assert!(told(writes).is_empty(), "a call of a server without names");
        let mut nameless = busy(1.0, 100);
        nameless.stacks = vec![runs(100, &["[server+0x1234]"])];
        assert_eq!(told(nameless).len(), 1);
        let both = busy_thread(&from_outside(vec![busy(1.0, 90), busy(1.0, 90)]));
        assert!(
            both.len() == 1 && both[0].headline.starts_with("2 threads such as rater"),
            "{both:?}"
        );
        assert!(
            busy_thread(&of_threads(vec![busy(1.0, 90)], 0.0)).is_empty(),
            "from inside"
        );
    }

    #[test]
    fn a_process_is_stopped_if_no_thread_of_it_runs() {
        let of = |state| Thread::of("shop", vec![Stack::of(9, state, &["shop::serve"])]);
        let found = stopped(&from_outside(vec![of(State::Stopped), of(State::Stopped)]));
        assert!(found[0].headline.contains("is stopped"), "{found:?}");
        let one_sleeps = vec![of(State::Stopped), of(State::Idle)];
        assert!(stopped(&from_outside(one_sleeps)).is_empty());
        assert!(stopped(&from_outside(Vec::new())).is_empty());
    }

    #[test]
    fn a_pool_whose_threads_all_work_is_told_and_one_with_an_idle_thread_is_not() {
        let works = || {
            let stack = in_call(90, "clock_nanosleep", &[BLOCKING, "shop::export"]);
            Thread::of(Role::Blocking.name(), vec![stack])
        };
        let with = |last: Option<Stack>| {
            let mut pool: Vec<Thread> = (1..MANY_BLOCKING).map(|_| works()).collect();
            pool.extend(last.map(|stack| Thread::of(Role::Blocking.name(), vec![stack])));
            busy_blocking_pool(&from_outside(pool))
        };
        assert!(with(None).is_empty(), "too few");
        assert!(with(Some(Stack::of(90, State::Idle, &[BLOCKING]))).is_empty());
        let receives = "std::sync::mpsc::Receiver<T>::recv";
        let waits = in_call(90, "futex", &[BLOCKING, "shop::consume", receives]);
        assert!(with(Some(waits)).is_empty());
        let found = with(works().stacks.pop()).remove(0);
        assert_eq!(found.level, Level::Bound);
        assert!(
            found.headline.contains("All 4 blocking threads")
                && found.headline.contains("shop::export"),
            "{found:?}"
        );
    }
}
