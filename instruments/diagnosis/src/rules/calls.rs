//! Calls to other services that are given up: by a time limit of their own, or because another call was quicker.

use ecosystem::{ONE_OF_SEVERAL, WaitKind};

use crate::evidence::{Evidence, Place, Requests};
use crate::finding::{Finding, Words};
use crate::thresholds::{
    CALLS_GIVEN_UP_WEIGHT, DROPPED, ENDED_BY_TIMER, MUCH_OF_ROUTE, OPENED_PER_REQUEST,
};
use crate::waiting::Waiting;

/// Calls that a time limit of their own ends. A limit of the whole request is told by how requests end.
pub(crate) fn given_up_by_limit(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for waiting in Waiting::all(evidence) {
        let place = waiting.place();
        let share = requests.ended_by_timer(place);
        if !is_call(place) || waiting.share < MUCH_OF_ROUTE || share < ENDED_BY_TIMER {
            continue;
        }
        if let Some(route) = requests.route(&place.route)
            && route.answers.timed_out as f64 >= DROPPED * route.finished.max(1) as f64
        {
            continue;
        }
        let at = place.line().map(|line| format!(" at {line}"));
        let words = Words {
            headline: format!(
                "{}: {:.0} % of the time {}{} ends by a time limit of the call.",
                waiting.routes(),
                share * 100.0,
                waiting.wait.in_words(),
                at.unwrap_or_default()
            ),
            seen: format!("{} A timer ended these waits, and no answer.", waiting.seen(requests)),
            cause: "The other service takes longer than the limit. A call that is given up closes its connection, and the \
                    other service works on."
                .to_owned(),
            fix: "Find out why the answers take longer, or allow that time. Do not ask again at once.".to_owned(),
        };
        let found = Finding::fault(
            "calls_given_up",
            CALLS_GIVEN_UP_WEIGHT,
            "/debug/await",
            words,
        );
        findings.push(found.at(place.anchor()));
    }
    findings
}

/// Calls that race each other, such as in a `select!`, with connections that are hardly used again.
pub(crate) fn race(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (Some(requests), Some(sockets)) = (&evidence.requests, &evidence.connections) else {
        return findings;
    };
    if evidence.client_made_at().is_some() {
        return findings;
    }
    for route in requests.whole() {
        let calls = calls_at_once(requests, &route.name);
        let share: f64 = calls.iter().map(|call| call.in_flight).sum();
        let mut lines: Vec<&str> = Vec::new();
        for call in &calls {
            if let Some(line) = outermost_line(call)
                && !lines.contains(&line)
            {
                lines.push(line);
            }
        }
        if lines.len() < 2 || share < MUCH_OF_ROUTE * route.in_flight || route.finished == 0 {
            continue;
        }
        let mut upstreams = sockets.upstreams.iter();
        let Some(peers) = upstreams.find(|peers| {
            let opened = (peers.opened + peers.ended) as f64;
            opened / route.finished as f64 >= OPENED_PER_REQUEST
        }) else {
            continue;
        };
        let words = Words {
            headline: format!(
                "{}: calls race at {}, and the slower one is dropped with its connection.",
                route.name,
                lines.join(" and ")
            ),
            seen: format!(
                "Requests wait for both at once. At least {} connections to {} were opened for {} requests.",
                peers.opened + peers.ended,
                peers.address,
                route.finished
            ),
            cause: "A `select!` drops the calls that lose, which closes their connections.".to_owned(),
            fix: "Make the second call only if the first has no answer after the usual time (a hedge after the 95th \
                  percentile)."
                .to_owned(),
        };
        findings.push(Finding::fault(
            "calls_race",
            CALLS_GIVEN_UP_WEIGHT,
            "/debug/await",
            words,
        ));
    }
    findings
}

/// Returns the calls of a route that requests await beside others.
fn calls_at_once<'a>(requests: &'a Requests, route: &str) -> Vec<&'a Place> {
    let mut calls = Vec::new();
    for place in &requests.places {
        if place.route == route && place.is_one_of_several() && is_call(place) {
            calls.push(place);
        }
    }
    calls
}

/// Returns the outermost line below the frame at which waits part.
fn outermost_line(place: &Place) -> Option<&str> {
    let mut frames = place.frames.iter().map(String::as_str);
    frames.find(|frame| frame.starts_with(ONE_OF_SEVERAL))?;
    frames.find(|frame| frame.ends_with(')') && !frame.starts_with('('))
}

/// Returns whether requests wait there for another service.
fn is_call(place: &Place) -> bool {
    use WaitKind::{Answer, AnswerOrStream, Body, NewConnection};
    matches!(
        place.kind(),
        Some(Answer | AnswerOrStream | Body | NewConnection)
    )
}

#[cfg(test)]
mod tests {
    use ecosystem::BY_TIMER;

    use super::*;
    use crate::evidence::{Connections, Peers, Release};
    use crate::testing::{both_sides, evidence, place, route};

    const LINE: &str = "shop::price (src/price.rs:19)";
    const ANSWER: &str = "(waiting for the answer)";

    fn limited(by: &str, share: f64, of_route: f64) -> Evidence {
        let waits = place("GET /price", &[LINE, ANSWER], of_route);
        let mut evidence = evidence(&[route("GET /price", 1.0, 100)], &[waits]);
        let requests = evidence.requests.as_mut().unwrap();
        requests.releases = vec![Release {
            route: "GET /price".to_owned(),
            frames: requests.places[0].frames.clone(),
            by: vec![by.to_owned()],
            share,
            ..crate::evidence::Release::default()
        }];
        evidence
    }

    #[test]
    fn calls_that_a_timer_ends_are_told_with_their_line() {
        both_sides(given_up_by_limit, ENDED_BY_TIMER, |share| {
            limited(BY_TIMER, share, 0.9)
        });
        both_sides(given_up_by_limit, MUCH_OF_ROUTE, |share| {
            limited(BY_TIMER, 0.5, share)
        });
        let found = given_up_by_limit(&limited(BY_TIMER, 0.5, 0.9)).remove(0);
        assert_eq!(
            found.headline,
            "GET /price: 50 % of the time waiting for the answer at shop::price (src/price.rs:19) ends by a time limit \
             of the call."
        );
        assert!(given_up_by_limit(&limited("(the network)", 1.0, 0.9)).is_empty());
    }

    #[test]
    fn a_limit_of_the_request_is_told_by_how_requests_end() {
        let mut cut = limited(BY_TIMER, 0.9, 0.9);
        cut.requests.as_mut().unwrap().routes[0].answers.timed_out = 50;
        assert!(given_up_by_limit(&cut).is_empty());
    }

    fn races(share: f64, opened: f64) -> Evidence {
        let call = |line| {
            let frames = ["(one of 2 waits at once)", line, ANSWER];
            place("GET /read", &frames, share / 2.0)
        };
        let places = [
            call("shop::read (src/read.rs:26)"),
            call("shop::read (src/read.rs:28)"),
        ];
        let mut evidence = evidence(&[route("GET /read", 1.0, 1000)], &places);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let opened = (opened * 1000.0) as usize;
        evidence.connections = Some(Connections {
            upstreams: vec![Peers {
                opened,
                ..Peers::default()
            }],
            ..Connections::default()
        });
        evidence
    }

    #[test]
    fn a_race_is_told_from_calls_that_are_joined_by_its_connections() {
        both_sides(race, MUCH_OF_ROUTE, |share| races(share, 1.0));
        both_sides(race, OPENED_PER_REQUEST, |opened| races(0.9, opened));
        let found = race(&races(0.9, 1.0)).remove(0);
        assert!(
            found
                .headline
                .contains("src/read.rs:26) and shop::read (src/read.rs:28)"),
            "{found:?}"
        );
    }
}
