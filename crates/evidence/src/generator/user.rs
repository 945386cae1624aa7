//! One simulated user: a connection, and when it sends.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::failure::Failure;
use super::patience::Patience;
use super::record::Record;
use super::schedule::Schedule;

/// What the users of one generator thread have in common.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) target: SocketAddr,
    pub(super) request: Vec<u8>,
    pub(super) answer: Vec<u8>,
    pub(super) keep_alive: bool,
    pub(super) time_out: Duration,
    pub(super) record: RefCell<Record>,
}

/// Between two attempts at a server that refuses or drops connections: without it a dead server
/// would be asked as fast as the processor allows.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

struct User<'s> {
    script: &'s Script,
    connection: Connection,
    patience: Patience,
}

/// A user of the closed loop: think, ask, wait for the answer, and again.
pub(super) async fn closed_loop(script: &Script, first: Instant, think: Duration) {
    let mut user = User::start(script, first).await;
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
pub(super) async fn open_loop(script: &Script, first: Instant, schedule: &Schedule) {
    let mut user = User::start(script, first).await;
    loop {
        let due = schedule.next().await;
        let _ = user.ask(due, Instant::now()).await;
    }
}

impl<'s> User<'s> {
    /// Comes at `first`, and connects then if connections are kept: opening them is not part of
    /// the first requests' latencies.
    async fn start(script: &'s Script, first: Instant) -> Self {
        tokio::time::sleep_until(first.into()).await;
        let mut user = Self {
            script,
            connection: Connection::new(script.target, script.keep_alive),
            patience: Patience::new(script.time_out),
        };
        if script.keep_alive {
            let opened = user
                .patience
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
        script.record.borrow_mut().in_flight += 1;
        let exchange = self.connection.exchange(&script.request);
        let answered = self.patience.for_answer(sent, exchange).await;
        let mut record = script.record.borrow_mut();
        record.in_flight -= 1;
        match answered {
            Ok(answer) if answer.status != 200 => {
                let failure = Failure::Status(answer.status);
                record.failed(failure);
                Err(failure)
            }
            Ok(answer) => {
                let body = self.connection.body(&answer);
                if body == script.answer {
                    record.right(due, sent);
                } else {
                    record.wrong(body);
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
