//! How late a runtime is with what is due: a task that ticks every millisecond. And why: the pieces
//! of work that its own thread has done since the tick before.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::{Instant, sleep_until};

use crate::work;

const PERIOD: Duration = Duration::from_millis(1);
/// The same, as the histogram counts.
const PERIOD_MICROS: u64 = 1_000;

/// The ticks so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeat(Arc<Mutex<Option<Ticks>>>);

#[derive(Debug)]
struct Ticks {
    lateness: Histogram<u64>,
    most_pieces: u64,
}

/// What the ticks tell: lateness in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stall {
    pub(crate) worst: f64,
    /// Of all moments and not of all ticks: one tick that is late by a second stands for the
    /// thousand that were due meanwhile.
    pub(crate) p99: f64,
    /// Most pieces of work that a ticking thread did itself between two ticks.
    pub(crate) most_pieces: u64,
}

impl Heartbeat {
    /// Starts to tick on the current runtime. Tokio's timers have whole milliseconds, so that up to
    /// about one is no lateness.
    pub(crate) fn start(&self) {
        // From a microsecond to an hour, to two digits: cannot fail.
        let Ok(lateness) = Histogram::new_with_bounds(1, 3_600_000_000, 2) else {
            return;
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Ticks {
            lateness,
            most_pieces: 0,
        });
        let heartbeat = self.clone();
        tokio::spawn(async move {
            let mut due = Instant::now() + PERIOD;
            loop {
                sleep_until(due).await;
                let now = Instant::now();
                heartbeat.record(now - due, work::taken_on_this_thread());
                // A tick that was missed is part of the lateness already.
                due = (due + PERIOD).max(now);
            }
        });
    }

    fn record(&self, late: Duration, pieces: u64) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticks) = slot.as_mut() {
            // An hour is more than any run lasts; what is longer counts as one.
            let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
            let micros = micros.clamp(1, ticks.lateness.high());
            // Within the bounds, so it cannot fail.
            let _ = ticks.lateness.record_correct(micros, PERIOD_MICROS);
            ticks.most_pieces = ticks.most_pieces.max(pieces);
        }
    }

    /// `None` if it was never started.
    pub(crate) fn stall(&self) -> Option<Stall> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ticks {
            lateness,
            most_pieces,
        } = slot.as_ref()?;
        let seconds = |micros: u64| micros as f64 / 1e6;
        Some(Stall {
            worst: seconds(lateness.max()),
            p99: seconds(lateness.value_at_quantile(0.99)),
            most_pieces: *most_pieces,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::Work;

    #[tokio::test]
    async fn a_blocked_runtime_is_late() {
        let heartbeat = Heartbeat::default();
        assert_eq!(heartbeat.stall(), None);
        heartbeat.start();
        tokio::time::sleep(Duration::from_millis(5)).await;
        std::thread::sleep(Duration::from_millis(50));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let stall = heartbeat.stall().expect("it ticks");
        assert!(stall.worst > 0.045, "{stall:?}");
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
        (0..2_000).for_each(|_| heartbeat.record(Duration::from_micros(50), 0));
        heartbeat.record(Duration::from_secs(1), 0);
        let stall = heartbeat.stall().expect("it was started");
        // A third of the time was stalled, and the longest waits are the first of that.
        assert!(stall.p99 > 0.9, "{stall:?}");
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
        let pieces = || heartbeat.stall().expect("it ticks").most_pieces;
        assert_eq!(pieces(), 0);
        (0..3).for_each(|_| {
            work.run();
        });
        tick().await;
        assert_eq!(pieces(), 3);
    }
}
