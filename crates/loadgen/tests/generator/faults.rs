//! Servers that answer wrongly, late, in pieces, or not at all.

use std::time::Duration;

use crate::server::{Reaction, Server, answer, ok};
use crate::{load, send};
use measurement::load::Load;

#[test]
fn wrong_bodies_are_found_and_not_counted_as_right() {
    let server = Server::start(|index, _| ok(if index % 10 == 9 { "7" } else { "6" }));
    let outcome = send(server.address, &load(4));
    assert!(outcome.wrong_answers > 0);
    assert_eq!(outcome.first_wrong_answer.as_deref(), Some("7"));
    assert!(outcome.completed > 0);
    assert!(outcome.completed + outcome.wrong_answers <= server.requests() as u64);
    assert_eq!(outcome.error_count(), 0);
}

#[test]
fn a_wrong_answer_in_the_warm_up_counts() {
    let server = Server::start(|index, _| ok(if index == 0 { "no" } else { "6" }));
    let outcome = send(server.address, &load(2));
    assert_eq!(outcome.wrong_answers, 1);
    assert_eq!(outcome.first_wrong_answer.as_deref(), Some("no"));
}

#[test]
fn a_long_wrong_answer_is_shortened() {
    let server = Server::start(|_, _| ok(&"x".repeat(5000)));
    let outcome = send(server.address, &load(1));
    let shown = outcome.first_wrong_answer.unwrap();
    assert!(
        shown.len() < 250 && shown.ends_with("(5000 bytes)"),
        "{shown}"
    );
}

#[test]
fn another_status_is_an_error_under_its_number() {
    let server = Server::start(|index, _| {
        Reaction::Answer(if index % 2 == 0 {
            answer("503 Service Unavailable", "6")
        } else {
            answer("200 OK", "6")
        })
    });
    let outcome = send(server.address, &load(4));
    assert!(outcome.errors["status 503"] > 0, "{:?}", outcome.errors);
    assert_eq!(outcome.errors.len(), 1);
    assert!(outcome.completed > 0);
    // The connection is fine: a status is no reason to open another.
    assert_eq!(server.connections(), 5);
}

#[test]
fn silence_is_a_time_out() {
    let server = Server::start(|_, _| Reaction::Silence);
    let outcome = send(
        server.address,
        &Load {
            time_out: Duration::from_millis(150),
            ..load(3)
        },
    );
    assert_eq!(outcome.completed, 0);
    assert!(outcome.requests_per_second == 0.0);
    assert!(outcome.errors["time_out"] >= 3, "{:?}", outcome.errors);
    assert_eq!(outcome.errors.len(), 1);
}

#[test]
fn an_answer_after_the_time_out_is_not_taken_for_the_next_ones() {
    // Each answer names its request's turn; a late one would be one turn behind.
    let server = Server::start(|index, _| {
        if index % 4 == 0 {
            Reaction::Late(Duration::from_millis(250), answer("200 OK", "late"))
        } else {
            ok("6")
        }
    });
    let outcome = send(
        server.address,
        &Load {
            time_out: Duration::from_millis(100),
            ..load(2)
        },
    );
    assert!(outcome.errors["time_out"] > 0);
    assert_eq!(outcome.wrong_answers, 0, "{:?}", outcome.first_wrong_answer);
}

#[test]
fn what_is_under_way_at_the_end_is_unfinished_and_no_error() {
    let server = Server::start(|_, _| Reaction::Silence);
    let outcome = send(server.address, &load(20));
    assert_eq!(outcome.unfinished, 20);
    assert_eq!(outcome.error_count(), 0);
}

#[test]
fn closing_is_told_from_closing_in_the_middle() {
    let server = Server::start(|index, _| {
        let whole = answer("200 OK", "6");
        match index % 3 {
            0 => Reaction::StderrTail(Vec::new()),
            1 => Reaction::StderrTail(whole[..whole.len() - 1].to_vec()),
            _ => Reaction::Answer(whole),
        }
    });
    let outcome = send(server.address, &load(6));
    assert!(
        outcome.errors["closed before an answer"] > 0,
        "{:?}",
        outcome.errors
    );
    assert!(
        outcome.errors["closed within an answer"] > 0,
        "{:?}",
        outcome.errors
    );
    assert_eq!(outcome.errors.len(), 2);
}

#[test]
fn a_server_may_close_after_an_answer() {
    // With a word of warning, and without: the next request takes a new connection.
    for head in ["connection: close\r\n", ""] {
        let server = Server::start(move |_, _| {
            Reaction::StderrTail(
                format!("HTTP/1.1 200 OK\r\n{head}content-length: 1\r\n\r\n6").into_bytes(),
            )
        });
        let mut load = load(2);
        load.arrivals = measurement::load::Arrivals::Closed {
            think: Duration::from_millis(20),
        };
        let outcome = send(server.address, &load);
        assert!(outcome.completed > 0);
        assert_eq!(outcome.error_count(), 0, "{:?}", outcome.errors);
    }
}

#[test]
fn chunks_and_bodies_to_the_end_of_the_connection_are_read() {
    let server = Server::start(|_, _| {
        Reaction::Answer(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n6\r\n0\r\n\r\n".to_vec(),
        )
    });
    let outcome = send(server.address, &load(2));
    assert!(outcome.completed > 0 && outcome.wrong_answers == 0 && outcome.error_count() == 0);

    let server = Server::start(|_, _| Reaction::StderrTail(b"HTTP/1.1 200 OK\r\n\r\n6".to_vec()));
    let outcome = send(server.address, &load(2));
    assert!(outcome.completed > 0 && outcome.wrong_answers == 0 && outcome.error_count() == 0);
}

#[test]
fn what_is_not_http_is_said_so() {
    let server = Server::start(|_, _| Reaction::Answer(b"+OK hello\r\n\r\n".to_vec()));
    let outcome = send(server.address, &load(2));
    assert!(
        outcome.errors["invalid: answer is not HTTP/1.1"] > 0,
        "{:?}",
        outcome.errors
    );
    // A broken server is not asked as fast as the CPU allows.
    assert!(outcome.error_count() < 50, "{:?}", outcome.errors);
}
