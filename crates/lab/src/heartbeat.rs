//! How late a runtime is with what is due: a task that ticks every millisecond.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::{Instant, sleep_until};

const PERIOD: Duration = Duration::from_millis(1);

/// The lateness of the ticks so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeat(Arc<Mutex<Option<Histogram<u64>>>>);

/// Lateness in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stall {
    pub(crate) worst: f64,
    pub(crate) p99: f64,
}

impl Heartbeat {
    /// Starts to tick on the current runtime. Tokio's timers have whole milliseconds, so that up to
    /// about one is no lateness.
    pub(crate) fn start(&self) {
        // From a microsecond to an hour, to two digits: cannot fail.
        let Ok(histogram) = Histogram::new_with_bounds(1, 3_600_000_000, 2) else {
            return;
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(histogram);
        let heartbeat = self.clone();
        tokio::spawn(async move {
            let mut due = Instant::now() + PERIOD;
            loop {
                sleep_until(due).await;
                let now = Instant::now();
                heartbeat.record(now - due);
                // A tick that was missed is part of the lateness already.
                due = (due + PERIOD).max(now);
            }
        });
    }

    fn record(&self, late: Duration) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(histogram) = slot.as_mut() {
            let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
            histogram.saturating_record(micros.max(1));
        }
    }

    /// `None` if it was never started.
    pub(crate) fn stall(&self) -> Option<Stall> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = slot.as_ref()?;
        let seconds = |micros: u64| micros as f64 / 1e6;
        Some(Stall {
            worst: seconds(histogram.max()),
            p99: seconds(histogram.value_at_quantile(0.99)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
