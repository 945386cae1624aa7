//! Requests wait for one task that lets them go, and that stands still now and then.

use ecosystem::WaitKind;

use crate::evidence::Evidence;
use crate::finding::{Finding, Words};
use crate::thresholds::{
    DROPPED, MOST_OF_ROUTE, ONE_TASK_MS, ONE_TASK_SHARE, ONE_TASK_STANDSTILL, ONE_TASK_WEIGHT,
};
use crate::waiting::Waiting;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    // A standstill of an overloaded service, whose clients leave, is told by how requests end.
    if requests.left_share() >= DROPPED {
        return findings;
    }
    for waiting in Waiting::all(evidence) {
        // A notification is waited for on purpose, as by a long poll.
        let is_of_task = matches!(waiting.kind(), WaitKind::Channel | WaitKind::Queue);
        // A body waits for each of its pieces, and none finishes while it is sent.
        let route = requests.route(&waiting.place().route);
        let route = route.filter(|route| !route.is_part);
        let standstill = route.map_or(0.0, |route| route.standstill);
        let is_long = waiting.ms.is_none_or(|ms| ms >= ONE_TASK_MS);
        if !is_of_task
            || !waiting.is_queue()
            || waiting.share < MOST_OF_ROUTE
            || standstill < ONE_TASK_STANDSTILL
            || !is_long
        {
            continue;
        }
        let Some(release) = requests.release_of(waiting.place()) else {
            continue;
        };
        let is_line = |by: &&String| by.ends_with(')') && !by.starts_with('(');
        let Some(by) = release.by.iter().rev().find(is_line) else {
            continue;
        };
        if release.share < ONE_TASK_SHARE {
            continue;
        }
        let words = Words {
            headline: format!(
                "{} One place lets {:.0} % of them go: {by}.",
                waiting.headline(),
                release.share * 100.0
            ),
            seen: format!(
                "{:.1} requests at once; for {standstill:.1} s none finished.",
                waiting.in_flight
            ),
            cause: "The task that lets them go does something else in between: a branch of a `select!` that is always \
                    ready and comes first, an `.await` for each message, or long work."
                .to_owned(),
            fix: "Look at what that task does between two messages. Put its future into \
                  `debug_endpoints::watch(\"NAME\", …)` where it is spawned, and the await profile shows it."
                .to_owned(),
        };
        findings.push(Finding::fault(
            "one_task",
            ONE_TASK_WEIGHT,
            "/debug/await?format=json",
            words,
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Release;
    use crate::testing::{both_sides, evidence, place, route};
    use crate::thresholds::QUEUE;

    fn of(in_flight: f64, share: f64, standstill: f64, ms: f64, released: f64) -> Evidence {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let finished = (in_flight * 10_000.0 / ms).round() as u64;
        let mut route = route("GET /status", in_flight / share, finished);
        route.standstill = standstill;
        let waits = [
            "shop::status (src/status.rs:15)",
            "tokio::sync::oneshot::Receiver",
        ];
        let mut evidence = evidence(&[route], &[place("GET /status", &waits, in_flight)]);
        let requests = evidence.requests.as_mut().unwrap();
        requests.releases = vec![Release {
            route: "GET /status".to_owned(),
            frames: waits.map(str::to_owned).to_vec(),
            by: vec!["shop::supervise (src/status.rs:31)".to_owned()],
            share: released,
        }];
        evidence
    }

    #[test]
    fn a_long_poll_and_a_body_in_pieces_stand_still_on_purpose() {
        let told = |leaf: &str, is_part| {
            let mut evidence = of(8.0, 0.9, 1.0, 50.0, 1.0);
            let requests = evidence.requests.as_mut().unwrap();
            requests.routes[0].is_part = is_part;
            let waits = ["shop::status (src/status.rs:15)", leaf];
            requests.places = vec![place("GET /status", &waits, 8.0)];
            requests.releases[0].frames = waits.map(str::to_owned).to_vec();
            !look(&evidence).is_empty()
        };
        assert!(told("tokio::sync::oneshot::Receiver", false));
        assert!(!told("tokio::sync::watch::Receiver", false));
        assert!(!told("tokio::sync::mpsc::Receiver", true));
    }

    #[test]
    fn a_task_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, QUEUE, |many| of(many, 0.9, 1.0, 50.0, 1.0));
        both_sides(look, MOST_OF_ROUTE, |share| of(8.0, share, 1.0, 50.0, 1.0));
        both_sides(look, ONE_TASK_STANDSTILL, |time| {
            of(8.0, 0.9, time, 50.0, 1.0)
        });
        both_sides(look, ONE_TASK_MS, |ms| of(80.0, 0.9, 1.0, ms, 1.0));
        both_sides(look, ONE_TASK_SHARE, |share| of(8.0, 0.9, 1.0, 50.0, share));
    }
}
