//! A task that ticks every millisecond on the service's own runtime, and measures how late each tick
//! is. To tell why, it notes what its thread did since the tick before: pieces of work, calls of the
//! archive, and CPU time.
//!
//! `/debug/heartbeat` of the debug endpoints measures from outside, for as long as somebody looks, and
//! needs nothing of the service. The counts here need a task of the service's own: the reactor's thread polls it,
//! so it can read that thread's counters.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cpu_time::ThreadTime;
use hdrhistogram::{CreationError, Histogram};
use tokio::time::{Instant, sleep_until};

use crate::archive::calls_on_this_thread;
use crate::locked;
use crate::metric::Metric;
use crate::work;

const PERIOD: Duration = Duration::from_millis(1);
/// The same, as the histogram counts.
const PERIOD_MICROS: u64 = 1_000;
/// Longest time that a thread may compute or sleep between two ticks and still tick in time. It leaves room for a few
/// answers and for the lateness of timers.
const IN_TIME: Duration = Duration::from_millis(5);

/// The ticks so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeat(Arc<Mutex<Option<Ticks>>>);

#[derive(Debug)]
struct Ticks {
    /// Lateness over all moments, not over all ticks: one tick that is a second late stands for the thousand
    /// that were due in that second.
    lateness: Histogram<u64>,
    /// CPU time of a ticking thread between two ticks, also over all moments. Unlike lateness it does
    /// not grow when the kernel gives the CPU to other processes.
    cpu_time: Histogram<u64>,
    /// All that ticking threads did between two ticks, and the most pieces of work at a time.
    sum: Interval,
    most_pieces: u64,
}

impl Ticks {
    fn metrics(&self, archive_calls: u64) -> Vec<Metric> {
        let sum = &self.sum;
        let mut metrics = vec![
            Metric::gauge(
                "reactor_stall_worst_seconds",
                "Longest lateness of a task that ticks every millisecond",
                seconds(self.lateness.max()),
            ),
            Metric::gauge(
                "reactor_stall_p99_seconds",
                "What that lateness is below in 99 of 100 moments",
                p99(&self.lateness),
            ),
            Metric::gauge(
                "reactor_tick_cpu_p99_seconds",
                "CPU time of the reactor's own thread between two of those ticks, in 99 of 100 moments",
                p99(&self.cpu_time),
            ),
            Metric::count(
                "reactor_work_between_ticks_peak",
                "Most pieces of work that the reactor's own thread did between two of those ticks",
                self.most_pieces,
            ),
            Metric::gauge(
                "reactor_archive_calls_share",
                "Share of all calls of the archive that the reactor's own thread waited for while no \
                 other thread was the reactor",
                sum.archive_calls as f64 / archive_calls.max(1) as f64,
            ),
        ];
        metrics.extend(sum.held_up.map(|held_up| {
            Metric::gauge(
                "reactor_held_up_share",
                "Share of the time when the reactor's own thread computed or slept for more \
                 than 5 ms between two of those ticks",
                held_up.as_secs_f64() / sum.time.as_secs_f64().max(1e-3),
            )
        }));
        metrics
    }
}

fn p99(times: &Histogram<u64>) -> f64 {
    seconds(times.value_at_quantile(0.99))
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Time and work of a thread since it began.
#[derive(Debug, Clone, Copy)]
struct Odometer {
    /// The number of the tick at which this was read.
    tick: u64,
    at: Instant,
    /// Time for which it was ready to run but had no CPU; `None` where the system does not tell.
    waited: Option<Duration>,
    cpu_time: ThreadTime,
    pieces: u64,
    archive_calls: u64,
}

/// Time and work of a ticking thread between two ticks.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    time: Duration,
    /// The part in which the thread computed or slept, if that was too long to tick in time. `None`
    /// where the system does not tell how long a thread waits for a CPU.
    held_up: Option<Duration>,
    cpu_time: Duration,
    pieces: u64,
    archive_calls: u64,
}

thread_local! {
    /// Read when this thread ticked last.
    static LAST: Cell<Option<Odometer>> = const { Cell::new(None) };
}

impl Interval {
    /// Returns the interval that ends with this tick. It is empty unless the same thread also ran the tick before: a
    /// runtime of several threads ticks on any of them.
    fn before(tick: u64) -> Self {
        let now = Odometer {
            tick,
            at: Instant::now(),
            waited: waited_for_a_cpu(),
            cpu_time: ThreadTime::now(),
            pieces: work::done_on_this_thread(),
            archive_calls: calls_on_this_thread(),
        };
        let last = LAST.replace(Some(now));
        let Some(began) = last.filter(|last| last.tick + 1 == tick) else {
            return Self::default();
        };
        let time = now.at - began.at;
        let waited = now.waited.zip(began.waited);
        Self {
            time,
            held_up: waited.map(|(now, began)| {
                let own = time.saturating_sub(now.saturating_sub(began));
                if own < IN_TIME { Duration::ZERO } else { own }
            }),
            cpu_time: now.cpu_time.duration_since(began.cpu_time),
            pieces: now.pieces - began.pieces,
            archive_calls: now.archive_calls - began.archive_calls,
        }
    }
}

/// Returns how long the calling thread has been ready to run without a CPU, since it began.
#[cfg(target_os = "linux")]
fn waited_for_a_cpu() -> Option<Duration> {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    thread_local! {
        /// Opened once a thread: it is read a thousand times a second.
        static SCHEDSTAT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let mut text = [0; 80];
    let length = SCHEDSTAT.with(|file| file.as_ref()?.read_at(&mut text, 0).ok())?;
    let text = str::from_utf8(&text[..length]).ok()?;
    let nanoseconds = text.split_whitespace().nth(1)?;
    nanoseconds.parse().ok().map(Duration::from_nanos)
}

#[cfg(not(target_os = "linux"))]
fn waited_for_a_cpu() -> Option<Duration> {
    None
}

impl Heartbeat {
    /// Starts to tick on the current runtime. Tokio's timers are exact to a millisecond, so a lateness
    /// of up to about one says nothing.
    pub(crate) fn start(&self) {
        let (Ok(lateness), Ok(cpu_time)) = (histogram(), histogram()) else {
            return;
        };
        *locked(&self.0) = Some(Ticks {
            lateness,
            cpu_time,
            sum: Interval {
                held_up: waited_for_a_cpu().map(|_| Duration::ZERO),
                ..Interval::default()
            },
            most_pieces: 0,
        });
        let heartbeat = self.clone();
        tokio::spawn(async move {
            let mut due = Instant::now() + PERIOD;
            for tick in 1.. {
                sleep_until(due).await;
                let now = Instant::now();
                heartbeat.record(now - due, &Interval::before(tick));
                // A tick that was missed is part of the lateness already.
                due = (due + PERIOD).max(now);
            }
        });
    }

    fn record(&self, late: Duration, interval: &Interval) {
        let mut slot = locked(&self.0);
        if let Some(ticks) = slot.as_mut() {
            add(&mut ticks.lateness, late);
            add(&mut ticks.cpu_time, interval.cpu_time);
            ticks.most_pieces = ticks.most_pieces.max(interval.pieces);
            ticks.sum.archive_calls += interval.archive_calls;
            ticks.sum.time += interval.time;
            if let (Some(sum), Some(held_up)) = (&mut ticks.sum.held_up, interval.held_up) {
                *sum += held_up;
            }
        }
    }

    /// Returns the metrics; none if the heartbeat was never started. `archive_calls` is the number of all calls of the
    /// archive.
    pub(crate) fn metrics(&self, archive_calls: u64) -> Vec<Metric> {
        let slot = locked(&self.0);
        let ticks = slot.as_ref();
        ticks.map_or_else(Vec::new, |ticks| ticks.metrics(archive_calls))
    }
}

/// Creates a histogram from a microsecond to an hour, to two digits. With these constants it cannot fail.
fn histogram() -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2)
}

/// Adds a time, and one for each tick that was due while it passed.
fn add(histogram: &mut Histogram<u64>, time: Duration) {
    // An hour is more than any run lasts; what is longer counts as one.
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let micros = micros.clamp(1, histogram.high());
    // Within the bounds, so it cannot fail.
    let _ = histogram.record_correct(micros, PERIOD_MICROS);
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use tokio::task::spawn_blocking;

    use super::*;

    use crate::Work;

    const STALL: Duration = Duration::from_millis(50);
    const MOST_OF_IT: f64 = 0.04;

    fn value(heartbeat: &Heartbeat, name: &str) -> f64 {
        let metrics = heartbeat.metrics(10_000);
        let found = metrics.iter().find(|metric| metric.name == name);
        found.expect("it ticks").value
    }

    /// Lets the heartbeat tick. Twice, since on a busy machine both may be due in the same turn.
    async fn tick() {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn work(duration: Duration) -> Work {
        Work::calibrated(duration, 0, Arc::default())
    }

    #[test]
    fn a_long_stall_is_not_one_sample_among_the_good_moments() {
        let heartbeat = Heartbeat::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        // It never runs: nothing waits for its task.
        runtime.block_on(async { heartbeat.start() });
        (0..2_000).for_each(|_| heartbeat.record(Duration::from_micros(50), &Interval::default()));
        heartbeat.record(Duration::from_secs(1), &Interval::default());
        let late = value(&heartbeat, "reactor_stall_p99_seconds");
        // A third of the time was stalled, and the longest waits are the first of that.
        assert!(late > 0.9, "{late}");
    }

    #[tokio::test]
    async fn work_counts_where_the_ticking_thread_did_it() {
        let heartbeat = Heartbeat::default();
        heartbeat.start();
        let work = work(Duration::from_micros(50));
        let pieces = || value(&heartbeat, "reactor_work_between_ticks_peak");
        tick().await;
        let elsewhere = work.clone();
        let done = spawn_blocking(move || elsewhere.run()).await;
        done.expect("it works");
        tick().await;
        assert!(pieces() < 1.0);
        (0..3).for_each(|_| {
            work.run();
        });
        tick().await;
        assert!((pieces() - 3.0).abs() < 1e-9);
    }

    #[tokio::test]
    async fn sleep_and_work_hold_up_the_ticks_and_work_alone_is_cpu_time() {
        let heartbeat = Heartbeat::default();
        heartbeat.start();
        let cpu_time = || value(&heartbeat, "reactor_tick_cpu_p99_seconds");
        // Where the system tells how long a thread waits for a CPU.
        let held_up = || {
            let slot = heartbeat.0.lock().expect("no panic");
            let sum = slot.as_ref().and_then(|ticks| ticks.sum.held_up);
            sum.map(|sum| sum.as_secs_f64())
        };
        tick().await;
        let before = held_up();
        sleep(STALL);
        tick().await;
        let slept = held_up();
        assert!(cpu_time() < MOST_OF_IT, "{}", cpu_time());
        // Twice as long, since it is calibrated in one moment and done in another.
        work(2 * STALL).run();
        tick().await;
        let computed = held_up();
        assert!(cpu_time() > MOST_OF_IT, "{}", cpu_time());
        if let (Some(before), Some(slept), Some(computed)) = (before, slept, computed) {
            assert!(slept - before > MOST_OF_IT, "{before}, then {slept}");
            assert!(computed - slept > MOST_OF_IT, "{slept}, then {computed}");
        }
        assert_eq!(computed.is_some(), cfg!(target_os = "linux"));
    }
}
