//! Threads that are always at work, where nothing but the threads is seen: from inside, the heartbeat, the wait of jobs
//! and a CPU profile say more.

use ecosystem::{PartMeaning, Role};

use crate::evidence::{Evidence, View};
use crate::finding::{Finding, Level, Words};
use crate::threads::seen::{
    Seen, grouped, in_state, inner_passes, is_told, most_frequent, own, place,
};
use crate::threads::{Stack, State, Thread, ThreadProfile};
use crate::thresholds::{
    BUSIEST, BUSY_THREAD_WEIGHT, FEWEST_SAMPLES, FULL_POOL_WEIGHT, MANY_BLOCKING, MOST_COMPUTING,
    POOL_LIMIT, STOPPED_WEIGHT,
};

fn threads(evidence: &Evidence) -> Option<&ThreadProfile> {
    let profile = evidence.threads.as_deref();
    profile.filter(|_| evidence.view == View::Outside)
}

/// A process whose threads were all stopped at every moment, as by Ctrl-Z.
pub(crate) fn stopped(evidence: &Evidence) -> Vec<Finding> {
    let Some(profile) = threads(evidence) else {
        return Vec::new();
    };
    let mut stacks = profile.stacks();
    if profile.threads.is_empty() || !stacks.all(|stack| stack.state == State::Stopped) {
        return Vec::new();
    }
    let words = Words {
        headline: "The process is stopped: nothing in it runs.".to_owned(),
        seen: "All threads were stopped in all samples.".to_owned(),
        cause: "Ctrl-Z in its terminal, the signal SIGSTOP, or a debugger that has left it so."
            .to_owned(),
        fix: "`kill -CONT` with its number lets it go on; in its terminal, `fg` does.".to_owned(),
    };
    let see = "/debug/threads";
    vec![Finding::fault("stopped", STOPPED_WEIGHT, see, words)]
}

/// Threads outside of any runtime that compute all the time, most of it in one function.
pub(crate) fn busy_thread(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(profile) = threads(evidence) else {
        return findings;
    };
    let mut busy: Vec<(String, Vec<&Thread>)> = Vec::new();
    for thread in profile.threads.iter().filter(|thread| !thread.is_runtime) {
        let Some(at) = busy_at(thread) else { continue };
        match busy.iter_mut().find(|(other, _)| *other == at) {
            Some((_, threads)) => threads.push(thread),
            None => busy.push((at, vec![thread])),
        }
    }
    for (at, threads) in busy {
        let names = match &threads[..] {
            [one] => format!("The thread {} computes", one.name),
            many => format!("{} threads such as {} compute", many.len(), many[0].name),
        };
        let (mut least, mut ran) = (1.0_f64, 0.0);
        for thread in &threads {
            least = least.min(thread.running);
            ran += thread.ran_s;
        }
        let words = Words {
            headline: format!("{names} all the time at {at}."),
            seen: format!(
                "Running in at least {:.0} % of the samples, with {:.2} CPUs.",
                least * 100.0,
                ran / evidence.seconds.max(f64::MIN_POSITIVE)
            ),
            cause: "A loop that asks again and again whether there is something to do, or work that needs a CPU."
                .to_owned(),
            fix: "Let such a loop wait for what it asks for. For work, take a CPU profile of that place (`perf record`)."
                .to_owned(),
        };
        let weight = BUSY_THREAD_WEIGHT;
        findings.push(Finding::fault(
            "busy_thread",
            weight,
            "/debug/threads",
            words,
        ));
    }
    findings
}

/// Returns the place at which a thread computes all the time, if there is one.
fn busy_at(thread: &Thread) -> Option<String> {
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

/// A blocking pool whose threads have all been at work at every moment.
pub(crate) fn busy_blocking_pool(evidence: &Evidence) -> Vec<Finding> {
    let Some(profile) = threads(evidence) else {
        return Vec::new();
    };
    let mut pool = Vec::new();
    for thread in &profile.threads {
        if thread.role == Role::Blocking.name() {
            pool.push(thread);
        }
    }
    let are_all_busy = pool.iter().all(|thread| is_always_at_work(thread));
    if pool.len() < MANY_BLOCKING || !are_all_busy {
        return Vec::new();
    }
    let all = pool.iter().flat_map(|thread| &thread.stacks);
    let Some(found) = by_place(all).into_iter().next() else {
        return Vec::new();
    };
    let text = found.text();
    let mut at = text.trim_matches(['(', ')']).to_owned();
    if own(found.most).is_some() {
        at = format!("{at} at {}", place(found.most));
    }
    let words = Words {
        headline: format!(
            "All {} blocking threads of tokio have work all the time, most are {at}.",
            pool.len()
        ),
        seen: "None was idle in any sample.".to_owned(),
        cause: format!(
            "Long jobs have all threads of the pool, if this is their limit (`max_blocking_threads`, {POOL_LIMIT} unless \
             set). Then `spawn_blocking`, `tokio::fs` and name lookups wait for one."
        ),
        fix: "Bound those jobs by a semaphore of their own, or make them shorter.".to_owned(),
    };
    let level = if pool.len() >= POOL_LIMIT {
        Level::Fault
    } else {
        Level::Bound
    };
    let (kind, see) = ("full_blocking_pool", "/debug/threads");
    vec![Finding::of(level, kind, FULL_POOL_WEIGHT, see, words)]
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

fn by_place<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Vec<Seen<'a>> {
    grouped(stacks, |stack| (place(stack), stack.state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::of_threads;
    use crate::threads::testing::{BLOCKING, in_call, runs};

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
