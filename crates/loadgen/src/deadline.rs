//! A time-out for every request of a user at the price of one timer a period.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};

use super::failure::Failure;

/// How long a user waits for an answer. A timer armed and disarmed for every request would cost
/// as much as the rest of the request; this one is armed for a request that is waiting, left
/// running when its answer comes, and moved on to the then current deadline only when it fires.
#[derive(Debug)]
pub(super) struct Deadline {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            timer: Box::pin(sleep(limit)),
        }
    }

    /// `work`, or [`Failure::TimeOut`] once the limit has passed since `start`.
    pub(super) async fn for_answer<T>(
        &mut self,
        start: Instant,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let deadline = tokio::time::Instant::from_std(start + self.limit);
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            while self.timer.as_mut().poll(context).is_ready() {
                if self.timer.deadline() >= deadline {
                    return Poll::Ready(Err(Failure::TimeOut));
                }
                self.timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}
