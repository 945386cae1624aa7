//! One simulated user: its connection, and the moments at which it sends.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::failure::Failure;
use super::pieces::Arrived;
use super::record::Record;
use super::schedule::Schedule;
use super::tally::{End, Tally};
use super::target::Target;
use crate::bodies::Right;
use crate::traffic::{Clients, Expected, Pause, Retries};
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
    /// Set if the times within answers are recorded.
    pub(super) has_pieces: bool,
    /// Behavior of clients that give up; `None` if none does.
    pub(super) clients: Option<Behavior>,
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

/// Behavior of clients that give up, and the retries that the clients of this thread have left.
#[derive(Debug)]
pub(super) struct Behavior {
    clients: Clients,
    saved: Cell<f64>,
}

/// End of an attempt that is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// An answer came, right or wrong.
    Answered,
    /// None came in time, or a refusal.
    Failed,
}

impl Behavior {
    pub(super) fn of(clients: Clients) -> Self {
        Self {
            clients,
            saved: Cell::new(0.0),
        }
    }

    /// Adds the share of a retry that a first attempt brings.
    fn save(&self) {
        let share = self.clients.retries.budget.unwrap_or(0.0);
        let saved = self.saved.get() + share;
        self.saved.set(saved.min(Retries::MOST_SAVED.max(share)));
    }

    /// Takes a retry from the budget, and returns whether there was one.
    fn spend(&self) -> bool {
        let left = self.saved.get() - 1.0;
        let is_there = self.clients.retries.budget.is_none() || left >= 0.0;
        if is_there {
            self.saved.set(left);
        }
        is_there
    }

    /// Returns the pause after `attempt` attempts; `random` has 32 random bits.
    fn pause(&self, attempt: u32, random: u32) -> Duration {
        match self.clients.retries.pause {
            Pause::None => Duration::ZERO,
            Pause::Backoff { first, longest } => {
                let doubled = first.saturating_mul(1 << (attempt - 1).min(30));
                let share = f64::from(random) / f64::from(u32::MAX);
                doubled.min(longest).mul_f64(share)
            }
        }
    }
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
        let mut accumulators = Vec::new();
        for (index, _) in (0_u32..).zip(&routes[1..]) {
            accumulators.push((f64::from(number + index * APART) * GOLDEN).fract());
        }
        Self(accumulators)
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
    has_ended: bool,
    /// The part of the answer that has arrived, if that is recorded.
    arrived: Option<Arrived>,
}

impl<'s> UnderWay<'s> {
    fn begin(script: &'s Script, route: usize, due: Instant, sent: Instant) -> Self {
        script.record.borrow_mut().begin(due);
        Self {
            record: &script.record,
            route,
            due,
            sent,
            has_ended: false,
            arrived: script.has_pieces.then(Arrived::nothing),
        }
    }

    /// Ends the request, and returns what has arrived.
    fn end(mut self) -> Option<Arrived> {
        self.has_ended = true;
        self.arrived.take()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut record = self.record.borrow_mut();
        record.end(self.due);
        if !self.has_ended {
            record.unanswered(self.route, self.due, Some(self.sent));
            if let Some(arrived) = &self.arrived {
                record.arrived(self.route, self.due, arrived, false);
            }
        }
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
            let opened = within(Instant::now() + script.time_out, user.connection.open());
            if let Err(failure) = opened.await {
                script.record.borrow_mut().failed(failure);
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        }
        user
    }

    /// Sends one request and records its answer. A client that gives up may send it again.
    async fn ask(&mut self, due: Instant, sent: Instant) -> Result<(), Failure> {
        let script = self.script;
        let route = self.mix.next(&script.routes);
        let planned = match &script.routes[route].requests[..] {
            [one] => one,
            many => &many[below(many.len(), self.random.next_u32())],
        };
        let Some(behavior) = &script.clients else {
            self.count(|tally| tally.first_attempt(due));
            let limit = sent + script.time_out;
            return self
                .attempt(route, planned, (due, sent), limit)
                .await
                .map(|_| ());
        };
        let Clients {
            give_up_after,
            retries,
        } = behavior.clients;
        // Sent so late, an answer in time would be the server's luck and a late one not its fault.
        if sent - due >= give_up_after / 2 {
            self.count(|tally| tally.unsent(due));
            return Ok(());
        }
        self.count(|tally| tally.first_attempt(due));
        behavior.save();
        let (mut number, mut sent, mut limit) = (1, sent, due + give_up_after);
        loop {
            let attempt = self.attempt(route, planned, (due, sent), limit).await?;
            let is_last = attempt == Attempt::Answered || number == retries.attempts;
            if is_last || !behavior.spend() {
                return Ok(());
            }
            let pause = behavior.pause(number, self.random.next_u32());
            if !pause.is_zero() {
                self.connection.rest(tokio::time::sleep(pause)).await;
            }
            self.count(|tally| tally.retry(due));
            number += 1;
            sent = Instant::now();
            limit = sent + give_up_after;
        }
    }

    fn count(&self, one: impl FnOnce(&mut Tally)) {
        self.script.record.borrow_mut().count(one);
    }

    /// Sends a request once and records its answer. Without one at `limit` its connection is closed.
    async fn attempt(
        &mut self,
        route: usize,
        planned: &PlannedRequest,
        (due, sent): (Instant, Instant),
        limit: Instant,
    ) -> Result<Attempt, Failure> {
        let script = self.script;
        let mut under_way = UnderWay::begin(script, route, due, sent);
        let arrived = under_way.arrived.as_mut();
        let exchange = self.connection.exchange(&planned.request, arrived);
        let mut answered = within(limit, exchange).await;
        if let Ok(status) = answered
            && !planned.expected.has(status)
        {
            answered = Err(Failure::Status(status));
        }
        let arrived = under_way.end();
        let gives_up = script.clients.is_some();
        let mut record = script.record.borrow_mut();
        match answered {
            Ok(status) if gives_up && planned.expected.allows(status) => {
                record.count(|tally| tally.ended(due, End::Refused));
                Ok(Attempt::Failed)
            }
            Ok(status) => {
                let is_allowed = planned.expected.allows(status);
                let body = self.connection.body();
                match &planned.body {
                    Some(right) if !is_allowed && !right.is(body) => {
                        record.wrong(&planned.request, body);
                    }
                    _ => {
                        record.right(route, due, sent);
                        if let Some(arrived) = &arrived {
                            record.arrived(route, due, arrived, true);
                        }
                    }
                }
                Ok(Attempt::Answered)
            }
            Err(Failure::TimeOut) if gives_up => {
                record.count(|tally| tally.ended(due, End::GivenUp));
                Ok(Attempt::Failed)
            }
            Err(failure) => {
                record.failed(failure);
                Err(failure)
            }
        }
    }
}

/// Returns the result of `work`, or [`Failure::TimeOut`] once `limit` has passed.
async fn within<T>(
    limit: Instant,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let in_time = tokio::time::timeout_at(limit.into(), work).await;
    in_time.unwrap_or(Err(Failure::TimeOut))
}

/// Returns an index below `count` from 32 random bits. Counts are far below 2^32, so the bias is negligible.
fn below(count: usize, random: u32) -> usize {
    // Below `count`, so it fits.
    usize::try_from((u64::from(random) * count as u64) >> 32).unwrap_or(0)
}
