//! Calls to other services that are given up: by a time limit of their own, or because another call was quicker.

use ecosystem::WaitKind;

use super::table;
use crate::evidence::{Frame, Line, Place, Requests};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::{DROPPED, ENDED_BY_TIMER, MUCH_OF_ROUTE, OPENED_PER_REQUEST};
use crate::waiting::Waiting;

/// Calls that a time limit of their own ends. A limit of the whole request is told by how requests end.
pub(crate) struct LimitedCalls(Waiting);

pub(crate) fn given_up_by_limit(facts: &Facts<'_>) -> Vec<LimitedCalls> {
    let mut found = Vec::new();
    for waiting in &facts.waits {
        let route = &waiting.route;
        let are_cut = route.answers.timed_out as f64 >= DROPPED * route.finished.max(1) as f64;
        let is_much = waiting.share >= MUCH_OF_ROUTE && waiting.ended_by_timer >= ENDED_BY_TIMER;
        if is_call(waiting.place()) && is_much && !are_cut {
            found.push(LimitedCalls(waiting.clone()));
        }
    }
    found
}

impl Sighting for LimitedCalls {
    fn row(&self) -> &'static Row {
        table::CALLS_GIVEN_UP
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.0.anchor()]
    }

    fn headline(&self) -> String {
        let at = self.0.line().map(|line| format!(" at {line}"));
        format!(
            "{}: {:.0} % of the time {}{} ends by a time limit of the call.",
            self.0.routes(),
            self.0.ended_by_timer * 100.0,
            self.0.wait.in_words(),
            at.unwrap_or_default()
        )
    }

    fn seen(&self) -> String {
        format!(
            "{} A timer ended these waits, and no answer.",
            self.0.seen()
        )
    }
}

/// Calls that race each other, such as in a `select!`, with connections that are hardly used again.
pub(crate) struct Race {
    route: String,
    lines: Vec<Line>,
    opened: usize,
    address: String,
    finished: u64,
}

pub(crate) fn races(facts: &Facts<'_>) -> Vec<Race> {
    let mut found = Vec::new();
    let Some(requests) = facts.requests else {
        return found;
    };
    if facts.client_made_at.is_some() {
        return found;
    }
    for route in requests.whole() {
        let calls = calls_at_once(requests, &route.name);
        let share: f64 = calls.iter().map(|call| call.in_flight).sum();
        let mut lines: Vec<Line> = Vec::new();
        for call in &calls {
            if let Some(line) = outermost_line(call)
                && !lines.contains(line)
            {
                lines.push(line.clone());
            }
        }
        if lines.len() < 2 || share < MUCH_OF_ROUTE * route.in_flight || route.finished == 0 {
            continue;
        }
        let mut upstreams = facts.evidence.upstreams().iter();
        let peers = upstreams.find(|peers| {
            let opened = (peers.opened + peers.ended) as f64;
            opened / route.finished as f64 >= OPENED_PER_REQUEST
        });
        if let Some(peers) = peers {
            found.push(Race {
                route: route.name.clone(),
                lines,
                opened: peers.opened + peers.ended,
                address: peers.address.clone(),
                finished: route.finished,
            });
        }
    }
    found
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
fn outermost_line(place: &Place) -> Option<&Line> {
    let mut frames = place.frames[place.parting()?..].iter();
    frames.find_map(Frame::line)
}

/// Returns whether requests wait there for another service.
fn is_call(place: &Place) -> bool {
    use WaitKind::{Answer, AnswerOrStream, Body, NewConnection};
    matches!(
        place.kind(),
        Some(Answer | AnswerOrStream | Body | NewConnection)
    )
}

impl Sighting for Race {
    fn row(&self) -> &'static Row {
        table::CALLS_RACE
    }

    fn headline(&self) -> String {
        let mut lines = Vec::new();
        for line in &self.lines {
            lines.push(line.to_string());
        }
        format!(
            "{}: calls race at {}, and the slower one is dropped with its connection.",
            self.route,
            lines.join(" and ")
        )
    }

    fn seen(&self) -> String {
        format!(
            "Requests wait for both at once. At least {} connections to {} were opened for {} requests.",
            self.opened, self.address, self.finished
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::{Connections, Peers, Release};
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, frames, place, route};

    fn given_up_by_limit(evidence: &Evidence) -> Vec<Finding> {
        told(super::given_up_by_limit(&Facts::of(evidence)))
    }

    fn race(evidence: &Evidence) -> Vec<Finding> {
        told(super::races(&Facts::of(evidence)))
    }

    const BY_TIMER: &str = "(a timer)";
    const LINE: &str = "shop::price (src/price.rs:19)";
    const ANSWER: &str = "(waiting for the answer)";

    fn limited(by: &str, share: f64, of_route: f64) -> Evidence {
        let waits = place("GET /price", &[LINE, ANSWER], of_route);
        let mut evidence = evidence(&[route("GET /price", 1.0, 100)], &[waits]);
        let requests = evidence.requests.as_mut().unwrap();
        requests.releases = vec![Release {
            route: "GET /price".to_owned(),
            frames: requests.places[0].frames.clone(),
            by: frames(&[by]),
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
