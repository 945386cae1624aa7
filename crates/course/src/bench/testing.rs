//! Steps that the tests of every chapter share: start a variant, send requests, load it, read its counters.
//! Any error fails the test and is part of its message.
#![allow(clippy::missing_panics_doc)] // That is how a test fails.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bench::metrics::Metrics;
use crate::measurement::load::Exchange;
use children::Interrupt;
use engine::load::Settings;
use engine::outcome::Outcome;
use engine::traffic::Traffic;

use engine::load::ask::send;

use crate::bench::server::{Launch, Server, ServerError};

/// Longest time for one answer or one profile.
pub const TIME_OUT: Duration = Duration::from_secs(30);

/// Starts a variant of a chapter's program.
///
/// # Errors
///
/// Fails if it does not start to listen.
pub fn launch(
    program: &str,
    variant: &str,
    data_seed: u64,
    arguments: &[&str],
) -> Result<Server, ServerError> {
    launch_with(program, variant, data_seed, arguments, None)
}

/// Starts a variant like [`launch`], with `workers` worker threads.
pub(crate) fn launch_with(
    program: &str,
    variant: &str,
    data_seed: u64,
    arguments: &[&str],
    workers: Option<u32>,
) -> Result<Server, ServerError> {
    let arguments: Vec<String> = arguments.iter().copied().map(str::to_owned).collect();
    let launch = Launch {
        data_seed,
        arguments: &arguments,
        workers,
        ..Launch::of(Path::new(program), variant)
    };
    Server::start(&launch, &Interrupt::new())
}

/// Starts a variant like [`launch`], and panics if that fails.
pub fn start(program: &str, variant: &str, data_seed: u64, arguments: &[&str]) -> Server {
    launch(program, variant, data_seed, arguments).expect("the server starts")
}

/// Makes a program of a shell script. A child process writes it, because a file that any process has open for
/// writing cannot be run. If this process opened it, a program that another thread starts at that moment
/// would inherit the open file.
pub fn write_script(file: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf %s "$1" >"$0" && chmod +x "$0""#]);
    let written = shell.arg(file).arg(script).status();
    assert!(written.expect("there is a shell").success());
}

/// Makes a `POST` request whose answer must be `answer`.
pub fn post(path: &str, body: &str, answer: &str) -> Exchange {
    Exchange {
        method: "POST".to_owned(),
        body: Some(body.to_owned()),
        ..Exchange::get(path, answer)
    }
}

/// Sends a request on a connection of its own and returns the answer as text.
///
/// # Errors
///
/// Returns a status that is not a success, with the text that came with it.
pub fn ask(server: &Server, exchange: &Exchange) -> Result<String, String> {
    match send(server.service(), &exchange.into(), TIME_OUT) {
        Ok(body) => Ok(String::from_utf8(body).expect("text")),
        Err(reason) => Err(reason.to_string()),
    }
}

/// Sends `GET path` and returns the answer.
///
/// # Errors
///
/// Fails like [`ask`].
pub fn get(server: &Server, path: &str) -> Result<String, String> {
    ask(server, &Exchange::get(path, ""))
}

/// Loads the server, and asserts that all answers are right.
pub fn load(server: &Server, load: &Traffic) -> Outcome {
    let interrupt = Interrupt::new();
    let settings = Settings::of(&interrupt);
    let outcome = engine::load::run(server.service(), load, &settings);
    let outcome = Outcome::from(outcome.expect("the load can be sent"));
    assert_eq!((outcome.wrong_answers, outcome.error_count()), (0, 0));
    outcome
}

/// Returns the value of a metric.
pub fn value(server: &Server, metric: &str) -> f64 {
    let value = metrics(server).get(metric);
    value.unwrap_or_else(|| panic!("the server does not report `{metric}`"))
}

/// Returns the value of a metric that counts.
pub fn count(server: &Server, metric: &str) -> u64 {
    let count = metrics(server).count(metric);
    count.unwrap_or_else(|| panic!("the server does not count `{metric}`"))
}

fn metrics(server: &Server) -> Metrics {
    server.metrics().unwrap_or_else(|error| panic!("{error}"))
}
