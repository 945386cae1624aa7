//! What the contract tests of a chapter are written with: `chapters/N-name/tests/contract.rs` says in
//! plain async Rust what every variant must do, whatever it gains.
//!
//! ```no_run
//! use crate::bench::contract::Chapter;
//!
//! const CHAPTER: Chapter = Chapter {
//!     program: "target/debug/chapter1", // in a test: env!("CARGO_BIN_EXE_chapter1")
//!     variants: &["problem", "solution"],
//!     fixes: &["solution"],
//! };
//!
//! # async fn example() {
//! CHAPTER
//!     .every_variant(async |service| {
//!         let answer = service.get("/read").await;
//!         assert_eq!(answer, "200 6", "the three clients' ids add up to 6");
//!     })
//!     .await;
//! # }
//! ```
//!
//! `cargo test -p chapter1 --test contract` asks the variants that are shipped; with `VARIANT=exercise`
//! in the environment it asks the exercise alone, as `cargo workshop check 1` does.
#![allow(clippy::missing_panics_doc)] // That is how a test fails.

mod output;
mod user;

use std::time::Duration;

use futures_util::future::join_all;

pub use self::output::run;
use self::user::LastAnswer;
pub use self::user::{Answer, Request, User, get, post};
use crate::bench::server::Server;
use crate::bench::testing;

/// Names the only variant that is asked.
pub(crate) const VARIANT: &str = "VARIANT";

/// The data that contracts are tried on, where a test names none: not those that readers see, so that
/// an answer which was typed in is a wrong one.
pub const DATA_SEED: u64 = 7;

/// A chapter's program, and which of its variants keep what.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// Its binary.
    pub program: &'static str,
    /// The variants that are asked what every variant must do.
    pub variants: &'static [&'static str],
    /// Variants that are asked what only a fix can do.
    pub fixes: &'static [&'static str],
}

impl Chapter {
    /// Starts every variant as readers do, one after the other, and passes it to the test.
    pub async fn every_variant(&self, test: impl AsyncFn(&Service)) {
        self.with(&[]).every_variant(test).await;
    }

    /// Starts the variants in which the fault is fixed, and passes each to the test.
    pub async fn every_fix(&self, test: impl AsyncFn(&Service)) {
        self.with(&[]).every_fix(test).await;
    }

    /// Servers that are started with these arguments.
    pub fn with<'a>(&self, arguments: &'a [&'a str]) -> Setup<'a> {
        Setup {
            chapter: *self,
            arguments,
            workers: None,
            data_seed: DATA_SEED,
        }
    }
}

/// Options of the servers of a test.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    chapter: Chapter,
    arguments: &'a [&'a str],
    workers: Option<u32>,
    data_seed: u64,
}

impl Setup<'_> {
    /// With so many worker threads, where the code does not say how many: with one for each of few
    /// CPUs, a race between two threads would hide.
    #[must_use]
    pub fn workers(self, workers: u32) -> Self {
        Self {
            workers: Some(workers),
            ..self
        }
    }

    /// On these data instead of [`DATA_SEED`]'s.
    #[must_use]
    pub fn data_seed(self, data_seed: u64) -> Self {
        Self { data_seed, ..self }
    }

    /// As [`Chapter::every_variant`].
    pub async fn every_variant(self, test: impl AsyncFn(&Service)) {
        self.each(self.chapter.variants, test).await;
    }

    /// As [`Chapter::every_fix`].
    pub async fn every_fix(self, test: impl AsyncFn(&Service)) {
        self.each(self.chapter.fixes, test).await;
    }

    async fn each(self, variants: &[&str], test: impl AsyncFn(&Service)) {
        let only = std::env::var(VARIANT).ok();
        let only = only.as_deref().map(|variant| [variant]);
        for variant in only.as_ref().map_or(variants, |only| only) {
            test(&self.start(variant)).await;
        }
    }

    fn start(self, variant: &str) -> Service {
        let Self {
            chapter: Chapter { program, .. },
            arguments,
            workers,
            data_seed,
        } = self;
        let server = testing::launch_with(program, variant, data_seed, arguments, workers);
        Service {
            variant: variant.to_owned(),
            server: server.unwrap_or_else(|error| panic!("{error}")),
            answered: LastAnswer::default(),
        }
    }
}

/// A running variant.
#[derive(Debug)]
pub struct Service {
    variant: String,
    server: Server,
    answered: LastAnswer,
}

impl Service {
    /// Somebody new, with a connection that is kept from request to request.
    pub fn user(&self) -> User {
        User::of(self.server.service(), self.answered.clone())
    }

    /// Returns what somebody new is answered.
    pub async fn send(&self, request: Request) -> Answer {
        self.user().send(request).await
    }

    /// Returns what somebody new is answered to `GET path`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(get(path)).await
    }

    /// Returns what somebody new is answered to `POST path` with this body.
    pub async fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.send(post(path, body)).await
    }

    /// So many users send a request at once, and hang up after so many milliseconds instead of waiting for
    /// the answer.
    pub async fn hang_up(&self, users: u32, request: Request, after_ms: u64) {
        let after = Duration::from_millis(after_ms);
        crowd(users, async |_| {
            self.user().hang_up(request.clone(), after).await;
        })
        .await;
    }

    /// The answer to a request once it is `expected`, or the last of ten: a machine that is still busy with
    /// what came before may let a service's own time-outs pass.
    pub async fn ask_until(&self, expected: &str, request: Request) -> Answer {
        for _ in 0..9 {
            let answer = self.send(request.clone()).await;
            if answer == expected {
                return answer;
            }
            pause(500).await;
        }
        self.send(request).await
    }

    /// A hundred users ask, and keep their connection for a second request: a server that answers one
    /// connection after the other has them wait until the first hangs up.
    pub async fn assert_serves_all_connections(&self, request: Request, expected: &str) {
        let answers = crowd(100, async |_| {
            let mut user = self.user();
            let first = user.send(request.clone()).await;
            pause(500).await;
            [first, user.send(request.clone()).await]
        })
        .await;
        let unanswered = answers.iter().flatten().find(|answer| **answer != expected);
        assert!(
            unanswered.is_none(),
            "of 100 users who keep their connection for a second request one was told {unanswered:?}; a worker \
             must answer all its connections at a time, not one after the other"
        );
    }

    /// The value of a metric on `/metrics`.
    pub fn metric(&self, name: &str) -> f64 {
        testing::value(&self.server, name)
    }

    /// The value of a metric that counts.
    pub fn count(&self, name: &str) -> u64 {
        testing::count(&self.server, name)
    }

    /// Returns what the admin listener answers to `GET path`.
    pub fn admin(&self, path: &str) -> String {
        let answer = self.server.ask(path, user::TIME_OUT);
        let answer = answer.unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8(answer).expect("text")
    }
}

/// A test that fails says which variant it was, and what panicked in the server meanwhile.
impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if std::env::var_os(VARIANT).is_none() {
                println!("variant: {}", self.variant);
            }
            if let Some(panic) = self.server.panics().first() {
                println!("{}{panic}", output::PANIC);
            }
        }
    }
}

/// So many users at once: each does the same, and knows its number.
pub async fn crowd<T>(users: u32, one_user: impl AsyncFn(u32) -> T) -> Vec<T> {
    join_all((0..users).map(|number| one_user(number))).await
}

/// All of them were answered as `expected`; `why` goes on after what one of them was told instead.
#[track_caller]
pub fn assert_all(answers: &[Answer], expected: &str, why: &str) {
    let mut others = answers.iter().filter(|answer| **answer != expected);
    if let Some(other) = others.next() {
        let (some, all) = (1 + others.count(), answers.len());
        assert!(
            !other.is_missing(),
            "with {all} users at once, {some} got {other}, and all must be answered; if your machine is busy, run this \
             again; otherwise look for requests that are refused or lost"
        );
        panic!("{some} of {all} users at once were told {other:?} instead of `{expected}`; {why}");
    }
}

/// Waits.
pub async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
