//! Servers that answer wrongly, late, in pieces, or not at all.

use std::time::Duration;

use engine::outcome::Outcome;

use engine::traffic::Route;

use crate::server::{Reaction, Server, answer, late, ok};
use crate::{load, once_in_three, seen_of, send, thinking};

/// Checks that requests failed for this cause and no other, and returns whether there were any.
#[track_caller]
fn failed(outcome: &Outcome, cause: &str) -> bool {
    let mut causes = outcome.errors.keys();
    assert!(causes.all(|seen| seen == cause), "{:?}", outcome.errors);
    outcome.errors.contains_key(cause)
}

#[test]
fn wrong_bodies_are_found_and_not_counted_as_right() {
    once_in_three(|| {
        let server = Server::start(|index, _| ok(if index % 10 == 9 { "7" } else { "6" }));
        let outcome = send(server.address, &load(4));
        assert!(outcome.completed + outcome.wrong_answers <= server.requests() as u64);
        assert_eq!(outcome.error_count(), 0);
        let is_wrong = outcome.wrong_answers > 0;
        let wrong = outcome.first_wrong_answer.as_deref();
        assert_eq!(wrong, is_wrong.then_some("7"));
        let request = outcome.first_wrong_request.as_deref();
        assert_eq!(request, is_wrong.then_some("GET /read"));
        (is_wrong && outcome.completed > 0, outcome)
    });
    // Wrong answers of the warm-up count, too.
    let first = |index, _: &str| ok(if index == 0 { "no" } else { "6" });
    once_in_three(|| {
        let outcome = seen_of(first, &load(2));
        assert!(outcome.wrong_answers <= 1);
        let wrong = outcome.first_wrong_answer.as_deref();
        (outcome.wrong_answers == 1 && wrong == Some("no"), outcome)
    });
    // A long one is shortened.
    once_in_three(|| {
        let outcome = seen_of(|_, _| ok(&"x".repeat(5000)), &load(1));
        let shown = outcome.first_wrong_answer.unwrap_or_default();
        let is_short = shown.len() < 250 && shown.ends_with("(5000 bytes)");
        (is_short, shown)
    });
}

#[test]
fn another_status_is_an_error_under_its_number() {
    let statuses = ["503 Service Unavailable", "200 OK"];
    let react = move |index, _: &str| Reaction::Answer(answer(statuses[index % 2], "6"));
    once_in_three(|| {
        let server = Server::start(react);
        let outcome = send(server.address, &load(4));
        let is_refused = failed(&outcome, "status 503");
        // The connection is fine: a status is no reason to open another.
        let connections = server.connections();
        assert!(connections <= 5, "{connections}");
        let is_enough = is_refused && outcome.completed > 0 && connections == 5;
        (is_enough, (outcome, connections))
    });
}

/// Node's servers close a connection after five seconds without a request, and others after one.
#[test]
fn a_close_that_crosses_a_request_after_a_pause_is_nobodys_fault() {
    let closes = |index, _: &str| match index % 2 {
        0 => ok("6"),
        _ => Reaction::Last(Vec::new()),
    };
    let mut load = thinking(1, Duration::from_millis(1100));
    load.warm_up = Duration::ZERO;
    load.duration = Duration::from_millis(2500);
    once_in_three(|| {
        let outcome = seen_of(closes, &load);
        assert_eq!(outcome.error_count(), 0, "{:?}", outcome.errors);
        (outcome.completed >= 2, outcome)
    });
    // Without a pause, or for a request that would do something twice, it is a failure.
    let mut post = crate::get("/read", "6");
    post.method = "POST".to_owned();
    load.routes = [Route::of(post, 1.0)].into();
    for load in [crate::load(1), load] {
        once_in_three(|| {
            let outcome = seen_of(closes, &load);
            (failed(&outcome, "closed before an answer"), outcome)
        });
    }
}

/// A server that reads a request and closes instead of answering has failed. The system distinguishes it from one that
/// had closed before.
#[test]
fn a_close_before_the_request_was_read_is_nobodys_fault() {
    let closes = |_, _: &str| {
        let text = answer("200 OK", "6");
        Reaction::Last(text)
    };
    // Where the close comes first and the reset is late, nobody can tell; that is rare, but where the machine stands still.
    once_in_three(|| {
        let outcome = seen_of(closes, &load(4));
        let is_rare = outcome.error_count() * 20 <= outcome.completed;
        (is_rare && outcome.completed > 0, outcome)
    });
}

#[test]
fn silence_is_a_time_out() {
    let mut load = load(3);
    load.time_out = Duration::from_millis(150);
    once_in_three(|| {
        let outcome = seen_of(|_, _| Reaction::Silence, &load);
        assert_eq!(outcome.completed, 0);
        assert!(outcome.requests_per_second == 0.0);
        failed(&outcome, "time_out");
        (outcome.error_count() >= 3, outcome.errors)
    });
}

#[test]
fn an_answer_after_the_time_out_is_not_taken_for_the_next_ones() {
    // Each answer names its request's turn; a late one would be one turn behind.
    let react = |index, _: &str| match index % 4 {
        0 => late(250, "late"),
        _ => ok("6"),
    };
    let mut load = load(2);
    load.time_out = Duration::from_millis(100);
    once_in_three(|| {
        let outcome = seen_of(react, &load);
        // A generator that stands still after it has sent may find the late answer and the time-out together, and read
        // that answer as the request's own.
        let is_right = outcome.wrong_answers == 0;
        (is_right && failed(&outcome, "time_out"), outcome)
    });
}

#[test]
fn what_is_under_way_at_the_end_is_unfinished_and_no_error() {
    once_in_three(|| {
        let outcome = seen_of(|_, _| Reaction::Silence, &load(20));
        assert_eq!(outcome.error_count(), 0);
        assert!(outcome.unfinished <= 20, "{}", outcome.unfinished);
        (outcome.unfinished == 20, outcome.unfinished)
    });
}

#[test]
fn a_server_may_close_after_an_answer() {
    // With a word of warning, and without: the next request takes a new connection.
    // The server may be held up between its answer and the close: the next request leaves it time. If that is not
    // enough, the close may cross the request.
    let mut load = thinking(2, Duration::from_millis(300));
    load.duration = Duration::from_secs(1);
    for head in ["connection: close\r\n", ""] {
        let text = format!("HTTP/1.1 200 OK\r\n{head}content-length: 1\r\n\r\n6");
        let react = move |_, _: &str| Reaction::Last(text.clone().into_bytes());
        once_in_three(|| {
            let outcome = seen_of(react.clone(), &load);
            (outcome.completed > 0 && outcome.error_count() == 0, outcome)
        });
    }
}

#[test]
fn what_is_not_http_is_said_so() {
    let react = |_, _: &str| Reaction::Answer(b"+OK hello\r\n\r\n".to_vec());
    once_in_three(|| {
        let outcome = seen_of(react, &load(2));
        // A broken server is not asked as fast as the CPU allows.
        assert!(outcome.error_count() < 50, "{:?}", outcome.errors);
        let said = "invalid: answer is not HTTP/1.1";
        (outcome.errors.contains_key(said), outcome.errors)
    });
}
