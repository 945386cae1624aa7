//! How late the service's runtime is: a thread that is no part of it asks for a tick every millisecond.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::runtime::{Handle, RuntimeMetrics};
use tokio::sync::oneshot;

use crate::error::EndpointError;

const PERIOD: Duration = Duration::from_millis(1);

/// How late the ticks of some time were. Of all moments, not of all ticks: one tick that is a second
/// late stands for the thousand that were due in that second. All times in seconds.
#[derive(Debug, Serialize)]
pub(crate) struct Heartbeat {
    /// How long it was looked at.
    seconds: f64,
    /// Ticks that ran; a thousand a second, if none was late.
    ticks: usize,
    late_p50: f64,
    late_p99: f64,
    late_worst: f64,
    /// How long the last tick had been waiting in vain when the time was over; 0 if it ran.
    unanswered: f64,
    /// The longest that each worker was held: neither parked nor, after 61 polls, looked for new work. Where
    /// it is much longer than a poll may take, something on that worker did not yield, and whatever was in
    /// its hands waited, even if other workers answered every tick in time.
    held_worst: Vec<f64>,
}

/// What one worker of the runtime has told about itself.
struct Worker {
    /// Parks and wakes, and the time that it worked: both are told when it parks, wakes, and after 61 polls.
    told: (u64, Duration),
    since: Instant,
    held: Duration,
}

impl Worker {
    fn all(metrics: &RuntimeMetrics) -> Vec<Self> {
        let now = Instant::now();
        let worker = |worker| Self {
            told: Self::told(metrics, worker),
            since: now,
            held: Duration::ZERO,
        };
        (0..metrics.num_workers()).map(worker).collect()
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

/// Watches `runtime` for `duration`, from a new thread. Dropping the future ends it.
pub(crate) async fn watch(runtime: Handle, duration: Duration) -> Result<Heartbeat, EndpointError> {
    static WATCHED: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let one_at_a_time = WATCHED.try_lock();
    let one_at_a_time = one_at_a_time.map_err(|_| EndpointError::Busy("heartbeat"))?;
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("heartbeat".to_owned())
        .spawn(move || {
            let heartbeat = take(&runtime, duration, &|| sender.is_closed());
            drop(one_at_a_time);
            let _ = sender.send(heartbeat);
        })
        .map_err(EndpointError::failed)?;
    receiver.await.map_err(EndpointError::failed)
}

fn take(runtime: &Handle, duration: Duration, is_over: &dyn Fn() -> bool) -> Heartbeat {
    let began = Instant::now();
    let end = began + duration;
    let metrics = runtime.metrics();
    let mut workers = Worker::all(&metrics);
    let (mut late, mut ticks, mut unanswered) = (Vec::new(), 0, Duration::ZERO);
    let mut due = began;
    while due < end && !is_over() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // From when it was asked for: that this thread woke late is not the runtime's doing.
        let asked = Instant::now();
        let (sender, receiver) = channel();
        runtime.spawn(async move { sender.send(Instant::now()) });
        let answered = loop {
            let answer = receiver.recv_timeout(PERIOD);
            Worker::look(&mut workers, &metrics);
            match answer {
                Ok(at) => break Some(at),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end && !is_over() => {}
                // Out of time, or the runtime has ended.
                Err(_) => break None,
            }
        };
        let until = answered.unwrap_or_else(Instant::now);
        // Every tick that would have been due meanwhile.
        let mut moment = asked;
        while moment <= until {
            late.push(until - moment);
            moment += PERIOD;
        }
        if answered.is_none() {
            unanswered = until - asked;
            break;
        }
        ticks += 1;
        due = (due + PERIOD).max(until);
    }
    late.sort_unstable();
    let quantile = |of_a_hundred: usize| {
        let at = (late.len() * of_a_hundred / 100).min(late.len().saturating_sub(1));
        late.get(at).map_or(0.0, Duration::as_secs_f64)
    };
    Heartbeat {
        seconds: began.elapsed().as_secs_f64(),
        ticks,
        late_p50: quantile(50),
        late_p99: quantile(99),
        late_worst: quantile(100),
        unanswered: unanswered.as_secs_f64(),
        held_worst: workers.iter().map(|one| one.held.as_secs_f64()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen of this runtime in so many milliseconds.
    async fn seen(ms: u64, meanwhile: impl Fn(&Handle) + Send + 'static) -> Heartbeat {
        let watched = tokio::task::spawn_blocking(move || {
            let runtime = Handle::current();
            take(&runtime, Duration::from_millis(ms), &|| {
                meanwhile(&runtime);
                false
            })
        });
        watched.await.expect("it ends")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_stall_stands_for_all_the_ticks_that_were_due_in_it() {
        let is_stalled = std::cell::Cell::new(false);
        let heartbeat = seen(400, move |runtime| {
            if !is_stalled.replace(true) {
                runtime.spawn(async { std::thread::sleep(Duration::from_millis(300)) });
            }
        });
        let heartbeat = heartbeat.await;
        assert!(heartbeat.late_worst > 0.2, "{heartbeat:?}");
        // More than half of the moments, and one of the ticks.
        assert!(heartbeat.late_p50 > 0.01, "{heartbeat:?}");
        assert!(heartbeat.ticks > 0, "{heartbeat:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn a_worker_that_is_held_does_not_hide_behind_the_others() {
        tokio::spawn(async { std::thread::sleep(Duration::from_millis(900)) });
        let mut held = seen(600, |_| ()).await.held_worst;
        held.sort_by(f64::total_cmp);
        assert_eq!(held.len(), 3);
        assert!(held[2] > 0.2, "{held:?}");
    }

    #[test]
    fn a_runtime_that_never_ticks_is_told_when_the_time_is_over() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime that nobody drives");
        let heartbeat = take(runtime.handle(), Duration::from_millis(60), &|| false);
        assert_eq!(heartbeat.ticks, 0);
        assert!(heartbeat.unanswered >= 0.05, "{heartbeat:?}");
    }
}
