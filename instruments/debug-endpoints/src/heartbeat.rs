//! Heartbeat: lateness of the service's runtimes. A thread outside of them asks each for a tick every millisecond.

use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};
use std::thread::Thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::runtime::RuntimeMetrics;

use crate::error::EndpointError;
use crate::own_thread::{self, Start, Until};
use crate::runtimes::{Scope, Watched};

/// Time between two ticks of a runtime, if few are watched.
const PERIOD: Duration = Duration::from_millis(1);

/// Most runtimes that are each asked every [`PERIOD`]; if there are more, each is asked less often.
const AT_ONCE: u32 = 8;

/// Time between two jobs for a blocking pool. One job at a time: it never needs more than one thread.
const JOBS: Duration = Duration::from_millis(100);

/// Lateness of ticks over an interval, with that of the runtime with the worst 99th percentile at the top.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Heartbeat {
    /// Length of the interval.
    seconds: f64,
    #[serde(flatten)]
    pub(crate) latest: Pulse,
    /// Lateness of each runtime that is watched.
    pub(crate) runtimes: Vec<Pulse>,
    scope: Scope,
}

impl Heartbeat {
    /// Returns a sentence on the runtimes that it may not watch, if there are any.
    pub(crate) fn not_watched(&self) -> Option<String> {
        let loops = self
            .scope
            .event_loops_not_watched
            .filter(|loops| *loops > 0)?;
        Some(format!(
            "event loops that the heartbeat does not watch: {loops}; if they are runtimes, add them with \
             DebugEndpoints::runtime"
        ))
    }
}

/// Lateness of one runtime, in seconds. It is that of all moments and not of all ticks: a tick that is a second late
/// stands for the thousand that were due in that second.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pulse {
    /// The runtime's name.
    pub(crate) runtime: String,
    /// Number of ticks that ran: a thousand a second, if none was late and few runtimes are watched.
    ticks: usize,
    late_p50: f32,
    pub(crate) late_p99: f32,
    late_worst: f32,
    /// Time for which the last tick had waited in vain at the end; 0 if it ran.
    pub(crate) unanswered: f64,
    /// Longest time for which each worker neither parked nor, after 61 polls, looked for new work. If it is much longer
    /// than a poll may take, something on that worker did not yield, and all its tasks waited, even if other workers
    /// answered every tick in time.
    pub(crate) held_worst: Vec<f64>,
    /// Share of the time for which its workers were busy, on average.
    pub(crate) busy: f64,
    /// Number of jobs that the blocking pool ran for this: ten a second if none waited. The next two say how long they
    /// waited for a thread of the pool, as `spawn_blocking` and `tokio::fs` do.
    blocking_jobs: usize,
    pub(crate) blocking_wait_p50: f32,
    pub(crate) blocking_wait_worst: f32,
    /// Time for which the last job had waited in vain at the end; 0 if it ran.
    pub(crate) blocking_unanswered: f64,
}

/// Figures that one worker of the runtime has published.
struct Worker {
    /// Number of parks and wakes, and time that it worked. It publishes both when it parks, wakes, and after 61 polls.
    told: (u64, Duration),
    since: Instant,
    held: Duration,
}

impl Worker {
    fn all(metrics: &RuntimeMetrics) -> Vec<Self> {
        let now = Instant::now();
        let mut all = Vec::new();
        for worker in 0..metrics.num_workers() {
            all.push(Self {
                told: Self::told(metrics, worker),
                since: now,
                held: Duration::ZERO,
            });
        }
        all
    }

    fn told(metrics: &RuntimeMetrics, worker: usize) -> (u64, Duration) {
        let parks_and_wakes = metrics.worker_park_unpark_count(worker);
        (parks_and_wakes, metrics.worker_total_busy_duration(worker))
    }

    fn look(all: &mut [Self], metrics: &RuntimeMetrics) {
        for (index, worker) in all.iter_mut().enumerate() {
            let now = Instant::now();
            let told = Self::told(metrics, index);
            if told != worker.told {
                worker.told = told;
                worker.since = now;
            } else if told.0 % 2 == 0 {
                // As many wakes as parks: it is awake.
                worker.held = worker.held.max(now - worker.since);
            }
        }
    }
}

/// Tick or job that is asked for again and again, and the lateness of its answers.
struct Beat {
    period: Duration,
    due: Instant,
    asked: Option<Instant>,
    answers: usize,
    late: Vec<f32>,
}

impl Beat {
    fn new(period: Duration, due: Instant) -> Self {
        Self {
            period,
            due,
            asked: None,
            answers: 0,
            late: Vec::new(),
        }
    }

    /// Returns whether the next tick or job is due.
    fn is_due(&self, now: Instant) -> bool {
        self.asked.is_none() && self.due <= now
    }

    /// Sets the time of asking to now. If this thread woke late, that is not the runtime's delay.
    fn ask(&mut self) {
        self.asked = Some(Instant::now());
    }

    fn answered(&mut self, at: Instant) {
        self.answers += 1;
        self.counted_until(at);
        self.due = (self.due + self.period).max(at);
    }

    /// Counts all answers that were due since it was asked for, and returns how long ago that was.
    fn counted_until(&mut self, until: Instant) -> Duration {
        let Some(asked) = self.asked.take() else {
            return Duration::ZERO;
        };
        let mut moment = asked;
        while moment <= until {
            self.late.push((until - moment).as_secs_f32());
            moment += self.period;
        }
        until - asked
    }

    /// Returns a percentile of the times, which have to be sorted.
    fn quantile(&self, of_a_hundred: usize) -> f32 {
        let rank = self.late.len() * of_a_hundred / 100;
        let last = self.late.len().saturating_sub(1);
        self.late.get(rank.min(last)).copied().unwrap_or_default()
    }
}

/// Moment at which something ran, and its thread; nothing, if its runtime has ended.
type Ran = Option<(Instant, Thread)>;

/// Request for a tick or a job. When dropped, it reports whether it ran.
struct Asked {
    to: Sender<(usize, bool, Ran)>,
    runtime: usize,
    is_job: bool,
    ran: Ran,
}

impl Asked {
    fn new(to: Sender<(usize, bool, Ran)>, runtime: usize, is_job: bool) -> Self {
        Self {
            to,
            runtime,
            is_job,
            ran: None,
        }
    }

    fn run(mut self) {
        self.ran = Some((Instant::now(), std::thread::current()));
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.to.send((self.runtime, self.is_job, self.ran.take()));
    }
}

/// A runtime while it is watched.
struct Patient {
    watched: Watched,
    metrics: RuntimeMetrics,
    workers: Vec<Worker>,
    ticks: Beat,
    jobs: Beat,
    has_ended: bool,
    began: Instant,
    /// Time for which its workers had been busy before the watch began.
    busy_before: Duration,
}

impl Patient {
    fn pulse(mut self, now: Instant) -> Pulse {
        let unanswered = self.ticks.counted_until(now).as_secs_f64();
        let blocking_unanswered = self.jobs.counted_until(now).as_secs_f64();
        self.ticks.late.sort_unstable_by(f32::total_cmp);
        self.jobs.late.sort_unstable_by(f32::total_cmp);
        let mut held_worst = Vec::new();
        for worker in &self.workers {
            held_worst.push(worker.held.as_secs_f64());
        }
        let busy = busy_time(&self.metrics).saturating_sub(self.busy_before);
        let worked = (now - self.began).as_secs_f64() * self.workers.len().max(1) as f64;
        Pulse {
            runtime: self.watched.name,
            ticks: self.ticks.answers,
            late_p50: self.ticks.quantile(50),
            late_p99: self.ticks.quantile(99),
            late_worst: self.ticks.quantile(100),
            unanswered,
            held_worst,
            busy: busy.as_secs_f64() / worked.max(f64::MIN_POSITIVE),
            blocking_jobs: self.jobs.answers,
            blocking_wait_p50: self.jobs.quantile(50),
            blocking_wait_worst: self.jobs.quantile(100),
            blocking_unanswered,
        }
    }
}

/// Returns the time for which all workers of a runtime together have been busy.
fn busy_time(metrics: &RuntimeMetrics) -> Duration {
    let workers = 0..metrics.num_workers();
    workers
        .map(|worker| metrics.worker_total_busy_duration(worker))
        .sum()
}

/// Watches `runtimes` for `duration`, from a new thread. It ends early if the future is dropped.
pub(crate) async fn watch(
    runtimes: Vec<Watched>,
    duration: Duration,
) -> Result<Heartbeat, EndpointError> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let looking = own_thread::look("heartbeat", &ONE, duration, move |until| {
        take(&runtimes, until)
    });
    looking.await?.ok_or(EndpointError::Unsupported(
        "there is no tokio runtime to watch: make the DebugEndpoints within the service's, or add it with \
         DebugEndpoints::runtime or watch_current_runtime",
    ))
}

/// Watches `runtimes`, or returns nothing if there are none.
fn take(runtimes: &[Watched], until: &Until<'_>) -> Option<Heartbeat> {
    let began = Instant::now();
    let period = PERIOD * u32::try_from(runtimes.len()).ok()?.div_ceil(AT_ONCE);
    let mut patients = Vec::new();
    for watched in runtimes {
        let metrics = watched.handle.metrics();
        patients.push(Patient {
            watched: watched.clone(),
            workers: Worker::all(&metrics),
            began,
            busy_before: busy_time(&metrics),
            metrics,
            ticks: Beat::new(period, began),
            jobs: Beat::new(JOBS, began),
            has_ended: false,
        });
    }
    let mut threads = BTreeSet::new();
    let (to, answers) = channel();
    while !until.is_over() && patients.iter().any(|one| !one.has_ended) {
        for (runtime, one) in patients.iter_mut().enumerate() {
            if !one.has_ended && one.ticks.is_due(Instant::now()) {
                one.ticks.ask();
                let asked = Asked::new(to.clone(), runtime, false);
                one.watched.handle.spawn(async { asked.run() });
            }
            // A pool that can start no thread at all panics, which may end the service.
            let is_due = !one.has_ended && one.jobs.is_due(Instant::now());
            if is_due && own_thread::try_start() == Start::Allowed {
                one.jobs.ask();
                let asked = Asked::new(to.clone(), runtime, true);
                one.watched.handle.spawn_blocking(|| asked.run());
            }
        }
        // Take the first answer within a millisecond, and all others that have come.
        let first = answers.recv_timeout(PERIOD).ok();
        for (runtime, is_job, ran) in first.into_iter().chain(answers.try_iter()) {
            let one = &mut patients[runtime];
            match ran {
                Some((at, _)) if is_job => one.jobs.answered(at),
                Some((at, thread)) => {
                    one.ticks.answered(at);
                    if let Some(name) = thread.name()
                        && !threads.contains(name)
                    {
                        threads.insert(name.to_owned());
                    }
                }
                None => {
                    // A runtime that has ended gives no more answers.
                    (one.ticks.asked, one.jobs.asked) = (None, None);
                    one.has_ended = true;
                }
            }
        }
        for one in &mut patients {
            Worker::look(&mut one.workers, &one.metrics);
        }
    }
    let now = Instant::now();
    let pulses: Vec<_> = patients.into_iter().map(|one| one.pulse(now)).collect();
    let mut latest = pulses.first()?;
    for pulse in &pulses {
        if pulse.late_p99 > latest.late_p99 {
            latest = pulse;
        }
    }
    Some(Heartbeat {
        seconds: began.elapsed().as_secs_f64(),
        latest: latest.clone(),
        runtimes: pulses,
        scope: Scope::of(runtimes, &threads),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::runtime::{Builder, Handle, Runtime};

    use super::*;

    fn watched(name: &str, handle: &Handle) -> Watched {
        Watched {
            name: name.to_owned(),
            handle: handle.clone(),
        }
    }

    fn multi_thread(workers: usize) -> Runtime {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(workers).max_blocking_threads(1);
        runtime.build().expect("a runtime")
    }

    /// Watches this runtime for `ms` milliseconds, and calls `meanwhile` at each look.
    fn seen(runtime: &Runtime, ms: u64, meanwhile: impl Fn()) -> Heartbeat {
        let watched = [watched("main", runtime.handle())];
        let is_over = || {
            meanwhile();
            false
        };
        let heartbeat = take(&watched, &Until::new(Duration::from_millis(ms), &is_over));
        heartbeat.expect("there is one")
    }

    /// Watches up to three times, because a machine that stands still for the time sees nothing. A fault does so each time.
    fn once_in_three(watch: impl Fn() -> Heartbeat, is_right: impl Fn(&Heartbeat) -> bool) {
        let mut wrong = Vec::new();
        while wrong.len() < 3 {
            let heartbeat = watch();
            if is_right(&heartbeat) {
                return;
            }
            wrong.push(heartbeat);
        }
        panic!("{wrong:?}");
    }

    /// Has `run` run something that holds its thread until the returned sender is dropped.
    fn held(run: impl FnOnce(Box<dyn FnOnce() + Send>)) -> Sender<()> {
        let (release, released) = channel();
        let (begun, has_begun) = channel();
        run(Box::new(move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        }));
        has_begun.recv().expect("it begins");
        release
    }

    fn held_worker(runtime: &Runtime) -> Sender<()> {
        held(|wait| drop(runtime.spawn(async { wait() })))
    }

    fn held_pool(runtime: &Runtime) -> Sender<()> {
        held(|wait| drop(runtime.spawn_blocking(wait)))
    }

    #[test]
    fn a_stall_stands_for_all_the_ticks_that_were_due_in_it() {
        let runtime = multi_thread(1);
        let release = Cell::new(Some(held_worker(&runtime)));
        // Looks are a millisecond apart, or more on a busy machine.
        let looks = Cell::new(0);
        let is_over = || {
            looks.set(looks.get() + 1);
            if looks.get() == 300 {
                drop(release.take());
                // This task is answered after all ticks that were asked for before.
                runtime
                    .block_on(async { tokio::spawn(async {}).await })
                    .expect("it runs");
            }
            looks.get() == 400
        };
        let until = Until::new(Duration::from_secs(60), &is_over);
        let heartbeat = take(&[watched("main", runtime.handle())], &until).expect("there is one");
        let latest = &heartbeat.latest;
        assert!(latest.late_worst > 0.2, "{heartbeat:?}");
        // The stall is more than half of the moments, but only one of the ticks.
        assert!(latest.late_p50 > 0.01, "{heartbeat:?}");
        assert!(latest.ticks > 0, "{heartbeat:?}");
    }

    #[test]
    fn a_worker_that_is_held_does_not_hide_behind_the_others() {
        let runtime = multi_thread(3);
        let _release = held_worker(&runtime);
        let watch = || seen(&runtime, 600, || ());
        once_in_three(watch, |seen| {
            let held = &seen.latest.held_worst;
            assert_eq!(held.len(), 3);
            held.iter().any(|held| *held > 0.2)
        });
    }

    #[test]
    fn a_full_blocking_pool_is_seen_while_the_workers_are_free() {
        let runtime = multi_thread(1);
        let free = || seen(&runtime, 1000, || ());
        once_in_three(free, |free| free.latest.blocking_jobs >= 1);
        let (release, looks) = (Cell::new(Some(held_pool(&runtime))), Cell::new(0));
        // Looks are a millisecond apart, or more on a busy machine.
        let is_over = || {
            looks.set(looks.get() + 1);
            if looks.get() == 300 {
                drop(release.take());
                // This job is run after the one that was asked for before.
                runtime
                    .block_on(async { tokio::task::spawn_blocking(|| ()).await })
                    .expect("it runs");
            }
            looks.get() == 400
        };
        let until = Until::new(Duration::from_secs(60), &is_over);
        let full = take(&[watched("main", runtime.handle())], &until).expect("there is one");
        assert!(full.latest.blocking_wait_worst > 0.1, "{full:?}");
        let _release = held_pool(&runtime);
        let stuck = || seen(&runtime, 400, || ());
        once_in_three(stuck, |stuck| {
            assert_eq!(stuck.latest.blocking_jobs, 0, "{stuck:?}");
            stuck.latest.blocking_unanswered > 0.1
        });
    }

    #[test]
    fn the_runtime_that_stands_still_is_the_one_at_the_top() {
        let (free, stalled) = (multi_thread(1), multi_thread(1));
        let two = [
            watched("free", free.handle()),
            watched("rows", stalled.handle()),
        ];
        let _release = held_worker(&stalled);
        let watch = || take(&two, &Until::new(Duration::from_secs(1), &|| false)).expect("two");
        once_in_three(watch, |heartbeat| {
            assert_eq!(heartbeat.runtimes[0].runtime, "free");
            let latest = &heartbeat.latest;
            let is_rows = latest.runtime == "rows" && latest.unanswered > 0.2;
            is_rows && heartbeat.runtimes[0].ticks > 10
        });
    }

    #[test]
    fn a_runtime_that_never_ticks_is_told_when_the_time_is_over_and_one_that_ended_at_once() {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime that nobody drives");
        let watch = || seen(&runtime, 600, || ());
        once_in_three(watch, |heartbeat| {
            assert_eq!(heartbeat.latest.ticks, 0);
            heartbeat.latest.unanswered >= 0.05
        });
        let ended = [watched("gone", runtime.handle())];
        drop(runtime);
        let heartbeat = take(&ended, &Until::new(Duration::from_secs(60), &|| false)).expect("one");
        assert!(heartbeat.seconds < 50.0, "{heartbeat:?}");
    }
}
