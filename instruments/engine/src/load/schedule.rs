//! Schedule of the open loop: the moments for which free users send.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand_pcg::Pcg32;
use tokio::sync::Semaphore;

use super::alarm::Alarm;
use crate::traffic::Phase;

/// One generator thread's requests, due at their moments whatever the answers do. A request that
/// is due while every user waits for an answer queues up here, and its latency counts on.
#[derive(Debug)]
pub(super) struct Schedule {
    start: Instant,
    /// Phases of the load; empty if its rate stays.
    phases: Arc<[Phase]>,
    /// Moments from the first request on, at the load's own rate.
    moments: Moments,
    /// Moments from the first request on that no user has taken up.
    left: RefCell<Moments>,
    /// One permit per request that is due and not taken up.
    due: Semaphore,
}

/// Moments at which requests are due, in seconds since the start. They have no end, and a clone yields the same again.
#[derive(Debug, Clone)]
pub(super) enum Moments {
    /// Even steps: number of the next moment, and seconds between two.
    Even(u64, f64),
    /// Poisson process: gaps are exponential, whatever came before. Holds the random generator, the last moment, and
    /// the gaps' mean.
    Poisson(Pcg32, f64, f64),
}

impl Moments {
    /// Creates `per_second` moments per second, the first at once.
    pub(super) fn even(per_second: f64) -> Self {
        Self::Even(0, 1.0 / per_second)
    }

    /// Creates `per_second` moments per second on average, drawn by `seed`. Two streams are independent.
    pub(super) fn poisson(per_second: f64, seed: u64, stream: u64) -> Self {
        Self::Poisson(Pcg32::new(seed, stream), 0.0, 1.0 / per_second)
    }

    fn next(&mut self) -> f64 {
        match self {
            Self::Even(number, step) => {
                *number += 1;
                *step * (*number - 1) as f64
            }
            Self::Poisson(random, moment, mean) => {
                *moment -= (1.0 - random.random::<f64>()).ln() * *mean;
                *moment
            }
        }
    }
}

impl Schedule {
    /// Creates a schedule that begins at `start`. Its rate is that of `moments`, times the share of each phase.
    pub(super) fn new(start: Instant, moments: Moments, phases: Arc<[Phase]>) -> Self {
        Self {
            start,
            phases,
            left: RefCell::new(moments.clone()),
            moments,
            due: Semaphore::new(0),
        }
    }

    /// Waits until a request is due and no other user takes it. Returns the moment at which it was due.
    pub(super) async fn next(&self) -> Instant {
        // The semaphore is never closed; were it, the request would be taken for due.
        if let Ok(permit) = self.due.acquire().await {
            permit.forget();
        }
        self.after(&mut self.left.borrow_mut())
    }

    /// Returns the due moment of the first request that no user has taken up, which may still be to come.
    pub(super) fn next_due(&self) -> Instant {
        self.after(&mut self.left.borrow().clone())
    }

    /// Returns the due moments of the requests that no user has been free to send.
    pub(super) fn overdue(&self) -> impl Iterator<Item = Instant> {
        let mut left = self.left.borrow().clone();
        (0..self.due.available_permits()).map(move |_| self.after(&mut left))
    }

    /// Declares requests due as their moments come, for ever.
    pub(super) async fn keep(&self) -> io::Result<()> {
        let mut alarm = Alarm::new()?;
        let mut moments = self.moments.clone();
        let mut next = self.after(&mut moments);
        loop {
            alarm.at(next).await?;
            let now = Instant::now();
            let mut more = 0;
            while next <= now {
                more += 1;
                next = self.after(&mut moments);
            }
            self.due.add_permits(more);
            // After a hold-up every moment has passed already: let the users run, too.
            tokio::task::yield_now().await;
        }
    }

    fn after(&self, moments: &mut Moments) -> Instant {
        self.start + Duration::from_secs_f64(stretched(moments.next(), &self.phases))
    }
}

/// Returns the moment at which a request is due that would be due at `moment` if the rate stayed: the moment up to which
/// the phases have as many requests. A Poisson process stays one, with another rate in each phase. The last phase does not
/// end.
fn stretched(moment: f64, phases: &[Phase]) -> f64 {
    let Some((last, before)) = phases.split_last() else {
        return moment;
    };
    let (mut begin, mut left) = (0.0, moment);
    for phase in before {
        let requested = phase.share * phase.seconds;
        if left < requested {
            return begin + left / phase.share;
        }
        begin += phase.seconds;
        left -= requested;
    }
    begin + left / last.share
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean of the gaps between the first moments, and their standard deviation in multiples of it.
    fn gaps(mut moments: Moments) -> (f64, f64) {
        let count = 20_000_u32;
        let mut before = moments.next();
        let gaps: Vec<f64> = (0..count)
            .map(|_| {
                let gap = moments.next() - before;
                before += gap;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / f64::from(count);
        let squares = gaps.iter().map(|gap| (gap - mean).powi(2));
        (
            mean,
            (squares.sum::<f64>() / f64::from(count)).sqrt() / mean,
        )
    }

    #[test]
    fn gaps_have_the_mean_that_the_rate_asks_for_and_spread_as_they_are_spaced() {
        let (mean, spread) = gaps(Moments::even(200.0));
        assert!((mean - 0.005).abs() < 1e-9 && spread < 1e-6, "{spread}");
        for seed in 0..3 {
            let (mean, spread) = gaps(Moments::poisson(200.0, seed, 5));
            assert!((mean / 0.005 - 1.0).abs() < 0.03, "{mean}");
            assert!((spread - 1.0).abs() < 0.03, "{spread}");
        }
    }

    #[test]
    fn each_phase_has_its_share_of_the_rate() {
        let phases = [(1.5, 2.0), (0.5, 4.0)].map(|(share, seconds)| Phase { share, seconds });
        let mut moments = Moments::even(100.0);
        let due: Vec<f64> = (0..600)
            .map(|_| stretched(moments.next(), &phases))
            .collect();
        assert!(due.is_sorted());
        let within = |from: f64, to: f64| due.iter().filter(|due| (from..to).contains(due)).count();
        assert_eq!([within(0.0, 1.0), within(1.0, 2.0)], [150, 150]);
        // The last phase lasts for as long as anybody asks.
        assert_eq!([within(2.0, 4.0), within(6.0, 8.0)], [100, 100]);
        assert!((stretched(3.25, &[]) - 3.25).abs() < 1e-9);
    }

    #[test]
    fn a_schedule_comes_again_with_its_seed_and_with_no_other() {
        let first = |seed, stream| {
            let mut moments = Moments::poisson(200.0, seed, stream);
            [(); 5].map(|()| moments.next().to_bits())
        };
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(2, 2));
        assert_ne!(first(1, 2), first(1, 3));
    }
}
