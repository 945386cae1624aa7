//! What is learned of a service's answers, and compared with another's.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use children::Interrupt;
use engine::answers::{Asked, How, Learnt, learn};
use engine::load::Target;
use engine::traffic::{Request, Route, Traffic};

use crate::server::{Reaction, Server, answer, ok};

/// Returns a load of `GET /item/N` for the numbers up to `values`.
fn items(values: usize) -> Traffic {
    let item = |number| Request::get(&format!("/item/{number}"));
    let route = Route {
        name: "GET /item/{1..}".to_owned(),
        weight: 1.0,
        requests: (1..=values).map(item).collect(),
    };
    Traffic::closed([route], 4)
}

/// Runs a test that asks three servers: base, change, and base again.
fn asks<T>(addresses: [SocketAddr; 3], test: impl FnOnce([&Asked<'_>; 3]) -> T) -> T {
    let interrupt = Interrupt::new();
    let targets = addresses.map(Target::from);
    let asked = |index: usize, who| Asked {
        who,
        target: &targets[index],
        time_out: Duration::from_secs(30),
        interrupt: &interrupt,
    };
    let all = [
        asked(0, "base"),
        asked(1, "change"),
        asked(2, "base (again)"),
    ];
    test(all.each_ref())
}

fn path(request: &str) -> String {
    request.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The change is right for exactly those values that were asked for before the first round.
#[test]
fn a_wrong_value_that_was_not_drawn_at_first_is_found_in_a_round() {
    let right = || Server::start(|_, request| ok(&path(request)));
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let is_learning = Arc::new(Mutex::new(true));
    let (all, learning) = (Arc::clone(&seen), Arc::clone(&is_learning));
    let change = Server::start(move |_, request| {
        let path = path(request);
        let mut all = all.lock().unwrap();
        if *learning.lock().unwrap() {
            all.insert(path.clone());
        }
        ok(if all.contains(&path) { &path } else { "cached" })
    });
    asks(
        [right().address, change.address, right().address],
        |servers| {
            let mut load = items(500);
            let mut learnt = learn(servers[0], &mut load, &How::default()).unwrap();
            learnt.compare(servers[1]).unwrap();
            *is_learning.lock().unwrap() = false;
            assert_eq!(seen.lock().unwrap().len(), 64);
            let error = learnt.compare_more(servers, &mut load).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("answers differ: GET /item/"), "{said}");
            assert!(said.contains("\"cached\" of the change"), "{said}");
        },
    );
}

/// Returns the number of requests of a load whose body is known.
fn known(load: &Traffic) -> usize {
    let requests = load.routes[0].requests.iter();
    requests.filter(|one| one.expected.body.is_some()).count()
}

#[test]
fn each_round_compares_more_and_the_sentence_says_how_many() {
    let right = || Server::start(|_, request| ok(&path(request))).address;
    asks([right(), right(), right()], |servers| {
        let mut load = items(500);
        let mut learnt = learn(servers[0], &mut load, &How::default()).unwrap();
        let count_of = |learnt: &Learnt, count: usize| {
            let said = learnt.notes().join(" ");
            assert!(
                said.contains(&format!("the bodies of {count} of 500 values are compared")),
                "{said}"
            );
        };
        count_of(&learnt, 64);
        let mut before = 64;
        for _ in 0..2 {
            learnt.compare_more(servers, &mut load).unwrap();
            // A busy machine asks for fewer in the time.
            let now = known(&load);
            assert!(now > before && now <= before + 96, "{now}");
            count_of(&learnt, now);
            before = now;
        }
    });
}

/// A tenth of the values show which server answers, as if that were a time.
#[test]
fn a_value_that_changes_by_itself_is_not_held_against_the_change() {
    let server = |name: &'static str| {
        let react = move |_, request: &str| {
            let path = path(request);
            if path.ends_with('7') {
                ok(&format!("{path} {name}"))
            } else {
                ok(&path)
            }
        };
        Server::start(react).address
    };
    asks([server(""), server(""), server("")], |calm| {
        let mut load = items(500);
        let mut learnt = learn(calm[0], &mut load, &How::default()).unwrap();
        let changing = |load: &Traffic| {
            let requests = load.routes[0].requests.iter();
            let known = requests.filter(|one| one.expected.body.is_some());
            known.filter(|one| one.path.ends_with('7')).count()
        };
        let before = changing(&load);
        asks([server("1"), server("2"), server("3")], |servers| {
            learnt.compare_more(servers, &mut load).unwrap();
        });
        assert!(known(&load) > 64);
        assert_eq!(changing(&load), before);
    });
}

#[test]
fn a_route_may_lack_some_values_and_not_all() {
    let few = Server::start(|_, request| {
        let is_there = path(request).len().is_multiple_of(2);
        if is_there {
            ok("there")
        } else {
            Reaction::Answer(answer("404 Not Found", "none"))
        }
    });
    let none = Server::start(|_, _| Reaction::Answer(answer("404 Not Found", "none")));
    asks([few.address, none.address, none.address], |servers| {
        let mut load = items(99);
        learn(servers[0], &mut load, &How::default()).unwrap();
        let statuses: BTreeSet<u16> = load.routes[0]
            .requests
            .iter()
            .map(|one| one.expected.status)
            .collect();
        assert_eq!(statuses, [200, 404].into());
        let error = learn(servers[1], &mut items(99), &How::default()).unwrap_err();
        assert!(error.to_string().contains("answers with status 404"));
    });
}
