//! One simulated user: a connection, and when it sends.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::deadline::Deadline;
use super::failure::Failure;
use super::record::Record;
use super::schedule::Schedule;

/// What the users of one generator thread have in common.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) target: SocketAddr,
    pub(super) ask: Ask,
    pub(super) write: Option<(Ask, f64)>,
    pub(super) keep_alive: bool,
    pub(super) time_out: Duration,
    pub(super) record: RefCell<Record>,
}

/// A request and the answer that is right.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request: Vec<u8>,
    pub(super) answer: Vec<u8>,
}

/// The golden ratio.
const GOLDEN: f64 = 1.618_033_988_749_895;

/// Between two attempts at a server that refuses or drops connections: without it a dead server
/// would be asked as fast as the CPU allows.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

struct User<'s> {
    script: &'s Script,
    connection: Connection,
    deadline: Deadline,
    /// Rises by the share of writes with every request; a write is due when it passes 1.
    writes_due: f64,
}

/// A user of the closed loop: think, ask, wait for the answer, and again.
pub(super) async fn closed_loop(script: &Script, number: u32, first: Instant, think: Duration) {
    let mut user = User::start(script, number, first).await;
    loop {
        let sent = Instant::now();
        let pause = match user.ask(sent, sent).await {
            Err(Failure::Status(_)) | Ok(()) => think,
            Err(_) => think.max(AFTER_A_FAILURE),
        };
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

/// A user of the open loop: takes up the next request of the schedule whenever it is free.
pub(super) async fn open_loop(script: &Script, number: u32, first: Instant, schedule: &Schedule) {
    let mut user = User::start(script, number, first).await;
    loop {
        let due = schedule.next().await;
        let _ = user.ask(due, Instant::now()).await;
    }
}

impl<'s> User<'s> {
    /// Comes at `first`, and connects then if connections are kept: opening them is not part of
    /// the first requests' latencies.
    async fn start(script: &'s Script, number: u32, first: Instant) -> Self {
        tokio::time::sleep_until(first.into()).await;
        let mut user = Self {
            script,
            connection: Connection::new(script.target, script.keep_alive),
            deadline: Deadline::new(script.time_out),
            // Multiples of the golden ratio lie evenly: users who are neighbours in a queue do
            // not write together, and every round has the same writes.
            writes_due: (f64::from(number) * GOLDEN).fract(),
        };
        if script.keep_alive {
            let opened = user
                .deadline
                .for_answer(Instant::now(), user.connection.open())
                .await;
            if let Err(failure) = opened {
                script.record.borrow_mut().failed(failure);
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        }
        user
    }

    /// One request and its answer, recorded.
    async fn ask(&mut self, due: Instant, sent: Instant) -> Result<(), Failure> {
        let script = self.script;
        let write = script.write.as_ref().and_then(|(ask, share)| {
            self.writes_due += share;
            let is_due = self.writes_due >= 1.0;
            self.writes_due -= f64::from(u8::from(is_due));
            is_due.then_some(ask)
        });
        let ask = write.unwrap_or(&script.ask);
        script.record.borrow_mut().in_flight += 1;
        let exchange = self.connection.exchange(&ask.request);
        let answered = self.deadline.for_answer(sent, exchange).await;
        let answered = answered.and_then(|answer| match answer.status {
            200 => Ok(answer),
            status => Err(Failure::Status(status)),
        });
        let mut record = script.record.borrow_mut();
        record.in_flight -= 1;
        match answered {
            Ok(answer) => {
                let body = self.connection.body(&answer);
                if body != ask.answer {
                    record.wrong(body);
                } else if write.is_some() {
                    record.right_write();
                } else {
                    record.right(due, sent);
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
