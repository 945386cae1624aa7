//! A task that ticks every millisecond and measures how late each tick is. For the reason it counts
//! what its thread did since the tick before: pieces of work, bytes of files written and read, CPU
//! time, and anything else that it did instead of ticking.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use cpu_time::ThreadTime;
use hdrhistogram::{CreationError, Histogram};
use tokio::time::{Instant, sleep_until};

use crate::files::bytes_on_this_thread;
use crate::metric::Metric;
use crate::work;

const PERIOD: Duration = Duration::from_millis(1);
/// The same, as the histogram counts.
const PERIOD_MICROS: u64 = 1_000;
/// What a thread may do between two ticks and still tick in time: some answers, and what a timer is late.
const IN_TIME: Duration = Duration::from_millis(5);

/// The ticks so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeat(Arc<Mutex<Option<Ticks>>>);

#[derive(Debug)]
struct Ticks {
    /// Of all moments, not of all ticks: one tick that is a second late stands for the thousand that
    /// were due in that second.
    lateness: Histogram<u64>,
    /// CPU time of a ticking thread between two ticks, also of all moments. Unlike lateness it does
    /// not grow when the kernel gives the CPU to other processes.
    cpu_time: Histogram<u64>,
    /// Most pieces of work that a ticking thread did itself between two ticks.
    most_pieces: u64,
    /// Bytes of files that a ticking thread wrote and read itself between two ticks, all together.
    file_bytes: u64,
    /// Time in which ticks were seen, and how much of it a ticking thread was held up by what it did
    /// itself. `None` on systems that do not tell how long a thread waits for a CPU.
    seen: Duration,
    held_up: Option<Duration>,
}

impl Ticks {
    fn metrics(&self) -> Vec<Metric> {
        let held_up = self.held_up.map(|held_up| {
            Metric::ratio(
                "reactor_held_up_share",
                "Share of the time in which the reactor's own thread computed or slept for more than 5 ms \
                 between two of those ticks",
                held_up.as_secs_f64() / self.seen.as_secs_f64().max(1e-3),
            )
        });
        let counted = vec![
            Metric::seconds(
                "reactor_stall_worst",
                "Longest lateness of a task that ticks every millisecond",
                seconds(self.lateness.max()),
            ),
            Metric::seconds(
                "reactor_stall_p99",
                "What that lateness is below in 99 of 100 moments",
                p99(&self.lateness),
            ),
            Metric::seconds(
                "reactor_tick_cpu_p99",
                "CPU time of the reactor's own thread between two of those ticks, in 99 of 100 moments",
                p99(&self.cpu_time),
            ),
            Metric::count(
                "reactor_work_between_ticks_peak",
                "Most pieces of work that the reactor's own thread did between two of those ticks",
                self.most_pieces,
            ),
        ];
        counted.into_iter().chain(held_up).collect()
    }
}

fn p99(times: &Histogram<u64>) -> f64 {
    seconds(times.value_at_quantile(0.99))
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// What a thread has used and done so far.
#[derive(Debug, Clone, Copy)]
struct Odometer {
    at: Instant,
    /// For how long it was ready to run and had no CPU.
    waited: Option<Duration>,
    cpu_time: ThreadTime,
    pieces: u64,
    file_bytes: u64,
}

thread_local! {
    /// What this thread had used and done when it ticked last.
    static TICKED: Cell<Option<Odometer>> = const { Cell::new(None) };
}

/// What a ticking thread did between two ticks.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    time: Duration,
    /// Of that, what is neither in time nor a wait for a CPU; `None` where nobody tells.
    held_up: Option<Duration>,
    cpu_time: Duration,
    pieces: u64,
    file_bytes: u64,
}

/// The thread that ticked last. A runtime of several threads ticks on any of them; what a thread did
/// since its own last tick counts only if no other thread ticked in between.
#[derive(Debug, Default)]
struct LastTick(Option<ThreadId>);

impl LastTick {
    /// What was done since the last tick; nothing if that was on another thread.
    fn end_interval(&mut self) -> Interval {
        let here = Some(std::thread::current().id());
        let now = Odometer {
            at: Instant::now(),
            waited: waited_for_a_cpu(),
            cpu_time: ThreadTime::now(),
            pieces: work::done_on_this_thread(),
            file_bytes: bytes_on_this_thread(),
        };
        let began = TICKED.replace(Some(now));
        let is_the_same = std::mem::replace(&mut self.0, here) == here;
        began
            .filter(|_| is_the_same)
            .map_or_else(Interval::default, |began| Interval {
                time: now.at - began.at,
                held_up: held_up(&began, &now),
                cpu_time: now.cpu_time.duration_since(began.cpu_time),
                pieces: now.pieces - began.pieces,
                file_bytes: now.file_bytes - began.file_bytes,
            })
    }
}

/// What a thread did itself between two ticks, if that was not in time.
fn held_up(began: &Odometer, now: &Odometer) -> Option<Duration> {
    let waited = now.waited?.checked_sub(began.waited?)?;
    let own = (now.at - began.at).saturating_sub(waited);
    Some(if own < IN_TIME { Duration::ZERO } else { own })
}

/// For how long the calling thread has been ready to run without a CPU, since it began.
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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Ticks {
            lateness,
            most_pieces: 0,
            file_bytes: 0,
            cpu_time,
            seen: Duration::ZERO,
            held_up: waited_for_a_cpu().map(|_| Duration::ZERO),
        });
        let heartbeat = self.clone();
        // ANCHOR: ticks
        tokio::spawn(async move {
            let mut due = Instant::now() + PERIOD;
            let mut last_tick = LastTick::default();
            loop {
                sleep_until(due).await;
                let now = Instant::now();
                heartbeat.record(now - due, last_tick.end_interval());
                // A tick that was missed is part of the lateness already.
                due = (due + PERIOD).max(now);
            }
        });
        // ANCHOR_END: ticks
    }

    fn record(&self, late: Duration, interval: Interval) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticks) = slot.as_mut() {
            add(&mut ticks.lateness, late);
            add(&mut ticks.cpu_time, interval.cpu_time);
            ticks.most_pieces = ticks.most_pieces.max(interval.pieces);
            ticks.file_bytes += interval.file_bytes;
            ticks.seen += interval.time;
            if let (Some(all), Some(held_up)) = (&mut ticks.held_up, interval.held_up) {
                *all += held_up;
            }
        }
    }

    /// Nothing if it was never started.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        self.look(Ticks::metrics).unwrap_or_default()
    }

    /// Bytes of files that a ticking thread wrote and read itself; 0 if it was never started.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.look(|ticks| ticks.file_bytes).unwrap_or_default()
    }

    fn look<T>(&self, at: impl FnOnce(&Ticks) -> T) -> Option<T> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(at)
    }
}

/// From a microsecond to an hour, to two digits: cannot fail.
fn histogram() -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2)
}

// ANCHOR: add
/// Adds a time, and one for each tick that was due while it passed.
fn add(histogram: &mut Histogram<u64>, time: Duration) {
    // An hour is more than any run lasts; what is longer counts as one.
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let micros = micros.clamp(1, histogram.high());
    // Within the bounds, so it cannot fail.
    let _ = histogram.record_correct(micros, PERIOD_MICROS);
}
// ANCHOR_END: add

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    use crate::{Files, Work};

    #[tokio::test]
    async fn a_blocked_runtime_is_late() {
        let heartbeat = Heartbeat::default();
        assert!(heartbeat.metrics().is_empty());
        heartbeat.start();
        tokio::time::sleep(Duration::from_millis(5)).await;
        std::thread::sleep(Duration::from_millis(50));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let worst = heartbeat.look(|ticks| seconds(ticks.lateness.max()));
        assert!(worst > Some(0.045), "{worst:?}");
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
        (0..2_000).for_each(|_| heartbeat.record(Duration::from_micros(50), Interval::default()));
        heartbeat.record(Duration::from_secs(1), Interval::default());
        let late = heartbeat.look(|ticks| p99(&ticks.lateness));
        // A third of the time was stalled, and the longest waits are the first of that.
        assert!(late > Some(0.9), "{late:?}");
    }

    #[tokio::test]
    async fn work_counts_where_the_ticking_thread_did_it() {
        let heartbeat = Heartbeat::default();
        heartbeat.start();
        let work = Work::calibrated(Duration::from_micros(50), 0, Arc::default());
        let tick = || tokio::time::sleep(Duration::from_millis(5));
        tick().await;
        let elsewhere = work.clone();
        tokio::task::spawn_blocking(move || elsewhere.run())
            .await
            .expect("it works");
        tick().await;
        let pieces = || heartbeat.look(|ticks| ticks.most_pieces);
        assert_eq!(pieces(), Some(0));
        (0..3).for_each(|_| {
            work.run();
        });
        tick().await;
        assert_eq!(pieces(), Some(3));
    }

    #[tokio::test]
    async fn bytes_of_files_count_where_the_ticking_thread_wrote_them() {
        let heartbeat = Heartbeat::default();
        heartbeat.start();
        let tick = || tokio::time::sleep(Duration::from_millis(5));
        tick().await;
        let files = Files::new(std::env::temp_dir(), 0, Arc::default());
        let file = || files.create().expect("a file");
        let mut elsewhere = file();
        tokio::task::spawn_blocking(move || elsewhere.write_all(&[0; 4096]))
            .await
            .expect("it ends")
            .expect("room on the disk");
        tick().await;
        let bytes = || heartbeat.file_bytes();
        assert_eq!(bytes(), 0);
        let mut here = file();
        here.write_all(&[0; 4096]).expect("room on the disk");
        here.rewind().expect("a place to read from");
        here.read_exact(&mut [0; 100]).expect("it was written");
        tick().await;
        assert_eq!(bytes(), 4196);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_a_thread_does_itself_holds_up_its_ticks() {
        let heartbeat = Heartbeat::default();
        heartbeat.start();
        let tick = || tokio::time::sleep(Duration::from_millis(5));
        let held_up = || heartbeat.look(|ticks| ticks.held_up).flatten();
        tick().await;
        let before = held_up().expect("Linux tells how long a thread waits for a CPU");
        // It sleeps for somebody else, then it computes.
        std::thread::sleep(Duration::from_millis(50));
        tick().await;
        let slept = held_up().expect("as before");
        Work::calibrated(Duration::from_millis(50), 0, Arc::default()).run();
        tick().await;
        let computed = held_up().expect("as before");
        let most_of_it = Duration::from_millis(40);
        assert!(
            slept.saturating_sub(before) > most_of_it,
            "{before:?}, then {slept:?}"
        );
        assert!(
            computed.saturating_sub(slept) > most_of_it,
            "{slept:?}, then {computed:?}"
        );
    }

    #[tokio::test]
    async fn cpu_time_between_ticks_leaves_out_what_the_thread_sleeps() {
        let heartbeat = Heartbeat::default();
        heartbeat.start();
        let cpu_time = || {
            let seen = heartbeat.look(|ticks| p99(&ticks.cpu_time));
            seen.expect("it ticks")
        };
        let tick = || tokio::time::sleep(Duration::from_millis(5));
        tick().await;
        std::thread::sleep(Duration::from_millis(50));
        tick().await;
        assert!(cpu_time() < 0.04, "{}", cpu_time());
        Work::calibrated(Duration::from_millis(50), 0, Arc::default()).run();
        tick().await;
        assert!(cpu_time() > 0.04, "{}", cpu_time());
    }
}
