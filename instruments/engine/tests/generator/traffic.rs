//! Several routes by weight, values that vary, and answers other than 200.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use children::Interrupt;
use engine::load::{Settings, TrafficOutcome, ask, run};
use engine::traffic::{Expected, Request, Route, Traffic};

use crate::once_in_three;
use crate::server::{Reaction, Server, answer, ok};

fn get(path: &str, status: u16, body: Option<&str>) -> Request {
    Request {
        expected: Expected::of(status, body.map(|body| body.as_bytes().to_vec())),
        ..Request::get(path)
    }
}

fn route(name: &str, weight: f64, requests: Vec<Request>) -> Route {
    Route {
        name: name.to_owned(),
        weight,
        requests,
    }
}

fn traffic(routes: Vec<Route>) -> Traffic {
    Traffic {
        duration: Duration::from_millis(500),
        time_out: Duration::from_secs(10),
        seed: 7,
        ..Traffic::closed(routes, 4)
    }
}

fn send(server: &Server, traffic: &Traffic) -> TrafficOutcome {
    let interrupt = Interrupt::new();
    run(server.address, traffic, &Settings::of(&interrupt)).unwrap()
}

/// Answers every path with itself, and counts.
fn echo() -> (Server, Arc<Mutex<BTreeMap<String, u64>>>) {
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let counts = Arc::clone(&seen);
    let server = Server::start(move |_, text| {
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let reaction = match &*path {
            "/none" => Reaction::Answer(answer("404 Not Found", "no such page")),
            path => ok(path),
        };
        *counts.lock().unwrap().entry(path).or_insert(0) += 1;
        reaction
    });
    (server, seen)
}

#[test]
fn routes_are_sent_by_weight_and_told_apart() {
    let traffic = traffic(vec![
        route("a", 5.0, vec![get("/a", 200, Some("/a"))]),
        route("b", 3.0, vec![get("/b", 200, Some("/b"))]),
        route("none", 2.0, vec![get("/none", 404, None)]),
    ]);
    once_in_three(|| {
        let (server, seen) = echo();
        let outcome = send(&server, &traffic);
        assert_eq!(outcome.users.faults(), 0, "{:?}", outcome.users.errors);
        let counts = seen.lock().unwrap().clone();
        let all: u64 = counts.values().sum();
        for (path, share) in [("/a", 0.5), ("/b", 0.3), ("/none", 0.2)] {
            let sent = counts.get(path).copied().unwrap_or_default() as f64;
            // Each user is at most two requests off its share.
            assert!((sent - share * all as f64).abs() <= 8.0, "{counts:?}");
        }
        let told: u64 = outcome.users.routes.iter().map(|r| r.latency.count()).sum();
        assert_eq!(told, outcome.users.completed);
        assert!(outcome.users.right_in_all >= outcome.users.completed);
        (told > 0 && all >= 100, counts)
    });
}

#[test]
fn values_are_drawn_and_each_has_its_answer() {
    let paths: Vec<String> = (0..5).map(|id| format!("/item/{id}")).collect();
    let requests = paths.iter().map(|path| get(path, 200, Some(path)));
    let traffic = traffic(vec![route("item", 1.0, requests.collect())]);
    once_in_three(|| {
        let (server, seen) = echo();
        let outcome = send(&server, &traffic);
        assert_eq!(outcome.users.faults(), 0);
        let counts = seen.lock().unwrap().clone();
        // All values are asked for.
        (counts.len() == 5, counts)
    });
}

#[test]
fn a_request_by_itself_yields_whatever_answers_it() {
    let (server, _) = echo();
    let within = Duration::from_secs(10);
    let body = ask::get(server.address, "/a", within).unwrap();
    assert_eq!(body, b"/a");
    let refused = ask::get(server.address, "/none", within).unwrap_err();
    assert!(refused.to_string().starts_with("404"), "{refused}");
}
