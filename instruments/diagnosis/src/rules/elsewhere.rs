//! Most of the time goes to a wait that is no fault by itself: whoever asks why has to go on there.

use ecosystem::WaitKind;

use crate::evidence::Evidence;
use crate::finding::{Finding, Level, Words};
use crate::rules::{waits, waits_for_itself};
use crate::thresholds::{MUCH_OF_ALL, MUCH_OF_ROUTE};
use crate::waiting::Waiting;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for waiting in Waiting::all(evidence) {
        let is_much = waiting.share >= MUCH_OF_ROUTE || waiting.share_of_all >= MUCH_OF_ALL;
        let is_told =
            waits::judged(&waiting).is_some() || waits_for_itself::is_stuck(&waiting, requests);
        if !is_inside(waiting.kind()) || !is_much || is_told {
            continue;
        }
        let mut seen = waiting.seen(requests);
        if let (WaitKind::Running | WaitKind::Ready, Some(threads)) =
            (waiting.kind(), &evidence.threads)
        {
            if let Some(places) = threads.at_work() {
                seen = format!("{seen} Threads that run requests are at {places}.");
            }
        }
        let words = Words {
            headline: waiting.headline(),
            seen,
            cause: waiting.wait.cause.to_owned(),
            fix: super::fix_of(waiting.wait),
        };
        let kind = waiting.kind().name();
        let weight = waiting.share_of_all / 10.0;
        findings.push(Finding::of(
            Level::Wait,
            kind,
            weight,
            "/debug/await",
            words,
        ));
    }
    findings
}

/// Returns whether such a wait goes on in this service, or in its database.
pub(crate) fn is_inside(kind: WaitKind) -> bool {
    use WaitKind::{Answer, AnswerOrStream, Body, Client, Network, NewConnection};
    !matches!(
        kind,
        Answer | AnswerOrStream | Body | Client | NewConnection | Network
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, evidence, place, route};

    const LINE: &str = "shop::note (src/note.rs:7)";

    #[test]
    fn a_wait_inside_is_told_from_a_share_of_its_route_however_short_it_is() {
        both_sides(look, MUCH_OF_ROUTE, |share| {
            // A request takes 0.1 ms.
            evidence(
                &[route("GET /a", 0.1, 10_000), route("GET /b", 10.0, 10_000)],
                &[place("GET /a", &[LINE, "tokio::time::Sleep"], 0.1 * share)],
            )
        });
    }

    #[test]
    fn it_is_told_if_all_routes_together_are_much_there() {
        let names: Vec<String> = (0..10).map(|n| format!("GET /{n}")).collect();
        both_sides(look, MUCH_OF_ALL, |share| {
            let routes: Vec<_> = names.iter().map(|name| route(name, 1.0, 100)).collect();
            let places: Vec<_> = names
                .iter()
                .map(|name| place(name, &[LINE, "tokio::task::JoinHandle"], share))
                .collect();
            evidence(&routes, &places)
        });
    }

    #[test]
    fn another_service_is_outside() {
        let answer = place("GET /a", &[LINE, "(waiting for the answer)"], 1.0);
        assert!(look(&evidence(&[route("GET /a", 1.0, 10)], &[answer])).is_empty());
    }
}
