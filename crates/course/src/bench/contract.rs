//! Tools for the contract tests of a chapter. `chapters/N-name/tests/contract.rs` says in plain async Rust
//! what every variant must do, whatever it gains.
//!
//! ```no_run
//! use course::bench::contract::Chapter;
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
//! `cargo test -p chapter1 --test contract` tests the variants that are shipped. With `VARIANT=exercise` in
//! the environment it tests the exercise alone, as `cargo workshop check 1` does.
#![allow(clippy::missing_panics_doc)] // That is how a test fails.

mod output;
mod user;

use std::fmt::Display;
use std::time::Duration;

use futures_util::future::join_all;

pub use self::output::run;
use self::user::LastAnswer;
pub use self::user::{Answer, User, get, post};
use crate::bench::server::{Server, ServerError};
use crate::bench::testing;
use crate::measurement::attempt::is_given_up;
pub use engine::traffic::Request;

/// Environment variable that names the only variant to test.
pub(crate) const VARIANT: &str = "VARIANT";

/// Seed of the data for contract tests that name none. Readers see other data, so an answer that was typed in
/// is wrong.
pub const DATA_SEED: u64 = 7;

/// A chapter's program, and the variants to test.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// Its binary.
    pub program: &'static str,
    /// Variants for the tests that every variant must pass.
    pub variants: &'static [&'static str],
    /// Variants for the tests that only a fix can pass.
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

    /// Sets the arguments of the servers.
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
    /// Sets the number of worker threads, unless the code sets it. On a machine with few CPUs, one worker per
    /// CPU would hide a race between two threads.
    #[must_use]
    pub fn workers(self, workers: u32) -> Self {
        Self {
            workers: Some(workers),
            ..self
        }
    }

    /// Sets the seed of the data, instead of [`DATA_SEED`].
    #[must_use]
    pub fn data_seed(self, data_seed: u64) -> Self {
        Self { data_seed, ..self }
    }

    /// Starts variants and passes each to the test, like [`Chapter::every_variant`].
    pub async fn every_variant(self, test: impl AsyncFn(&Service)) {
        self.each(self.chapter.variants, test).await;
    }

    /// Starts variants and passes each to the test, like [`Chapter::every_fix`].
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
        let server = server.unwrap_or_else(|error| {
            if let ServerError::Hangs { is_idle: false, .. } = error {
                println!("{}", output::IN_TIME);
            }
            panic!("{error}");
        });
        Service {
            variant: variant.to_owned(),
            answered: LastAnswer::of(server.id()),
            server,
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
    /// Returns a new user, whose connection is kept from request to request.
    pub fn user(&self) -> User {
        User::of(self.server.service(), self.answered.clone())
    }

    /// Sends a request as a new user and returns the answer.
    pub async fn send(&self, request: Request) -> Answer {
        self.user().send(request).await
    }

    /// Sends `GET path` as a new user and returns the answer.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(get(path)).await
    }

    /// Sends `POST path` with this body as a new user and returns the answer.
    pub async fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.send(post(path, body)).await
    }

    /// Lets `users` users send a request at once. They hang up after `after_ms` milliseconds without waiting
    /// for the answer.
    pub async fn hang_up(&self, users: u32, request: Request, after_ms: u64) {
        let after = Duration::from_millis(after_ms);
        crowd(users, async |_| {
            self.user().hang_up(request.clone(), after).await;
        })
        .await;
    }

    /// Repeats a request until the answer is `expected`, at most ten times, and returns the last answer. A
    /// machine that is still busy with earlier requests may exceed a service's own time-outs.
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

    /// Asserts that a hundred users are answered who keep their connection for a second request. A server
    /// that answers one connection after the other lets them wait until the first hangs up.
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

    /// Returns the value of a metric on `/metrics`.
    pub fn metric(&self, name: &str) -> f64 {
        testing::value(&self.server, name)
    }

    /// Returns the value of a metric that counts.
    pub fn count(&self, name: &str) -> u64 {
        testing::count(&self.server, name)
    }

    /// Returns the admin listener's answer to `GET path`.
    pub fn admin(&self, path: &str) -> String {
        let answer = self.server.ask(path, user::TIME_OUT);
        let answer = answer.unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8(answer).expect("text")
    }
}

/// Prints the variant and the server's first panic if the test fails.
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

/// Runs `one_user` for `users` users at once; each gets its number.
pub async fn crowd<T>(users: u32, one_user: impl AsyncFn(u32) -> T) -> Vec<T> {
    join_all((0..users).map(|number| one_user(number))).await
}

/// Asserts that all answers are `expected`. In the message, `why` follows the first other answer.
#[track_caller]
pub fn assert_all(answers: &[Answer], expected: &str, why: &str) {
    let mut others = answers.iter().filter(|answer| **answer != expected);
    if let Some(other) = others.next() {
        let (some, all) = (1 + others.count(), answers.len());
        if is_given_up(&other.to_string()) {
            println!("{}", output::IN_TIME);
        }
        if answers.iter().all(Answer::is_overdue) {
            assert_answered(other);
        }
        assert!(
            !other.is_missing(),
            "with {all} users at once, {some} got {other}, and all must be answered; look for requests that are refused or \
             lost"
        );
        panic!("{some} of {all} users at once were told {other:?} instead of `{expected}`; {why}");
    }
}

/// Asserts that a service answers somebody at all. Pass the answer of a user who was alone, or of one of a crowd in
/// which all went without.
#[track_caller]
pub fn assert_answered(answer: &Answer) {
    assert!(
        !answer.is_overdue(),
        "nobody was answered: there was {answer}; look for an `.await` or a loop that never ends"
    );
}

/// Asserts something about time that a busy machine can make false: that an answer comes early enough, or that enough
/// users are there at once. `sentence` is the message.
#[track_caller]
pub fn assert_in_time(holds: bool, sentence: impl Display) {
    if !holds {
        println!("{}", output::IN_TIME);
        panic!("{sentence}");
    }
}

/// Waits.
pub async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
