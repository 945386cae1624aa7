//! One simulated user: its connection, and the moments at which it sends.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::failure::Failure;
use super::record::Record;
use super::schedule::Schedule;
use super::target::Target;
use crate::bodies::Right;
use crate::traffic::Expected;
use hyper::Request;
use hyper::body::Bytes;
use rand::Rng as _;
use rand_pcg::Pcg32;

/// Script that the users of one generator thread have in common.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) target: Target,
    /// At least one.
    pub(super) routes: Vec<PlannedRoute>,
    /// Seed for the draws among the values of a route.
    pub(super) seed: u64,
    pub(super) keep_alive: bool,
    pub(super) time_out: Duration,
    /// Largest body of an answer in bytes.
    pub(super) largest_answer: usize,
    pub(super) record: RefCell<Record>,
}

/// A route, prepared for sending.
#[derive(Debug)]
pub(super) struct PlannedRoute {
    /// Share of all requests. The first route gets what the others leave.
    pub(super) share: f64,
    /// Prepared requests, at least one; users draw among them.
    pub(super) requests: Vec<PlannedRequest>,
}

/// A request and the answer that is right.
#[derive(Debug)]
pub(super) struct PlannedRequest {
    pub(super) request: Request<Bytes>,
    pub(super) expected: Expected,
    /// Right body, unless any will do.
    pub(super) body: Option<Right>,
}

/// Distance between the starts of the accumulators of two routes of one user, in multiples of the golden ratio. It only
/// has to be far from the numbers by which users differ.
const APART: u32 = 1009;

const GOLDEN: f64 = 1.618_033_988_749_895;

/// Pause between two attempts at a server that refuses or drops connections. Without it a dead server would be asked as
/// fast as the CPU allows.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

struct User<'s> {
    script: &'s Script,
    connection: Connection,
    mix: Mix,
    random: Pcg32,
}

/// Choice of the next route, by error diffusion. The accumulator of each route but the first grows by the route's share
/// with every request. One that reaches 1 pays 1, and its route is sent; otherwise it is the first route. So even a
/// short run has the shares that the load asks for.
pub(super) struct Mix(Vec<f64>);

impl Mix {
    /// Creates the mix of the user `number`. The fractions of multiples of the golden ratio lie evenly between 0 and 1.
    /// So users with neighboring numbers do not write together, and every round has the same writes.
    pub(super) fn new(routes: &[PlannedRoute], number: u32) -> Self {
        let others = (0_u32..).zip(&routes[1..]);
        let start = |(index, _)| (f64::from(number + index * APART) * GOLDEN).fract();
        Self(others.map(start).collect())
    }

    /// Returns the route to send next. If several accumulators have reached 1, the later ones wait for the next
    /// request.
    pub(super) fn next(&mut self, routes: &[PlannedRoute]) -> usize {
        for (accumulator, route) in self.0.iter_mut().zip(&routes[1..]) {
            *accumulator += route.share;
        }
        let Some(index) = self.0.iter().position(|sum| *sum >= 1.0) else {
            return 0;
        };
        self.0[index] -= 1.0;
        index + 1
    }
}

/// A request under way. Dropping it before its end, at the end of the load, leaves it unanswered.
struct UnderWay<'s> {
    record: &'s RefCell<Record>,
    route: usize,
    due: Instant,
    sent: Instant,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut record = self.record.borrow_mut();
        record.unanswered(self.route, self.due, Some(self.sent));
    }
}

/// Runs a user of the closed loop: ask, wait for the answer, think, and again.
pub(super) async fn closed_loop(script: &Script, number: u32, first: Instant, think: Duration) {
    let mut user = User::start(script, number, first).await;
    loop {
        let sent = Instant::now();
        let pause = match user.ask(sent, sent).await {
            Err(Failure::Status(_) | Failure::Grpc(_)) | Ok(()) => think,
            Err(_) => think.max(AFTER_A_FAILURE),
        };
        if !pause.is_zero() {
            user.connection.rest(tokio::time::sleep(pause)).await;
        }
    }
}

/// Runs a user of the open loop, which takes up the next request of the schedule whenever it is free.
pub(super) async fn open_loop(script: &Script, number: u32, first: Instant, schedule: &Schedule) {
    let mut user = User::start(script, number, first).await;
    loop {
        let due = user.connection.rest(schedule.next()).await;
        let _ = user.ask(due, Instant::now()).await;
    }
}

impl<'s> User<'s> {
    /// Waits until `first`, and then connects if connections are kept: opening them is not part of the first requests'
    /// latencies.
    async fn start(script: &'s Script, number: u32, first: Instant) -> Self {
        tokio::time::sleep_until(first.into()).await;
        let mut user = Self {
            script,
            connection: Connection::new(
                script.target.clone(),
                script.keep_alive,
                script.largest_answer,
            ),
            mix: Mix::new(&script.routes, number),
            random: Pcg32::new(script.seed, u64::from(number)),
        };
        if script.keep_alive {
            let opened = within(script.time_out, Instant::now(), user.connection.open());
            if let Err(failure) = opened.await {
                script.record.borrow_mut().failed(failure);
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        }
        user
    }

    /// Sends one request and records its answer.
    async fn ask(&mut self, due: Instant, sent: Instant) -> Result<(), Failure> {
        let script = self.script;
        let route = self.mix.next(&script.routes);
        let planned = match &script.routes[route].requests[..] {
            [one] => one,
            many => &many[below(many.len(), self.random.next_u32())],
        };
        let under_way = UnderWay {
            record: &script.record,
            route,
            due,
            sent,
        };
        let exchange = self.connection.exchange(&planned.request);
        let answered = within(script.time_out, sent, exchange).await;
        let answered = answered.and_then(|status| {
            if planned.expected.has(status) {
                Ok(planned.expected.allows(status))
            } else {
                Err(Failure::Status(status))
            }
        });
        std::mem::forget(under_way);
        let mut record = script.record.borrow_mut();
        match answered {
            Ok(is_allowed) => {
                let body = self.connection.body();
                match &planned.body {
                    Some(right) if !is_allowed && !right.is(body) => record.wrong(body),
                    _ => record.right(route, due, sent),
                }
                Ok(())
            }
            Err(failure) => {
                record.failed(failure);
                Err(failure)
            }
        }
    }
}

/// Returns the result of `work`, or [`Failure::TimeOut`] once `limit` has passed since `start`.
pub(super) async fn within<T>(
    limit: Duration,
    start: Instant,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let in_time = tokio::time::timeout_at((start + limit).into(), work).await;
    in_time.unwrap_or(Err(Failure::TimeOut))
}

/// Returns an index below `count` from 32 random bits. Counts are far below 2^32, so the bias is negligible.
fn below(count: usize, random: u32) -> usize {
    // Below `count`, so it fits.
    usize::try_from((u64::from(random) * count as u64) >> 32).unwrap_or(0)
}
