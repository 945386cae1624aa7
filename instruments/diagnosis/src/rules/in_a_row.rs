//! A request waits for the same thing many times, one after the other: a query for each row.

use ecosystem::WaitKind;

use crate::evidence::Evidence;
use crate::finding::{Finding, Words};
use crate::thresholds::{IN_A_ROW, IN_A_ROW_MS, IN_A_ROW_WEIGHT, MUCH_OF_ROUTE};
use crate::waiting::Waiting;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for waiting in Waiting::all(evidence) {
        let Some(times) = times(&waiting) else {
            continue;
        };
        if waiting.share < MUCH_OF_ROUTE {
            continue;
        }
        let words = Words {
            headline: waiting.headline(),
            seen: format!(
                "About {times:.0} such waits follow each other in a request. {}",
                waiting.seen(requests)
            ),
            cause: "A loop asks for one thing after the other.".to_owned(),
            fix: "Ask once for all of them, or for several at the same time.".to_owned(),
        };
        let weight = IN_A_ROW_WEIGHT + waiting.share / 2.0;
        findings.push(Finding::fault("in_a_row", weight, "/debug/await", words));
    }
    findings
}

/// How many waits follow each other, if somebody else could be asked for all at once.
fn times(waiting: &Waiting) -> Option<f64> {
    use WaitKind::{Answer, AnswerOrStream, BlockingPool, Database, Lock, NewConnection, Pool};
    let times = waiting.in_a_row?;
    let each = waiting.ms.unwrap_or_default() / times;
    // A transaction's begin is polled several times, and is one wait.
    let is_transaction = waiting.kind() == WaitKind::Database && waiting.wait.what.starts_with('(');
    let is_asked_for = matches!(
        waiting.kind(),
        Answer | AnswerOrStream | BlockingPool | Database | Lock | NewConnection | Pool
    );
    let is_many = times >= IN_A_ROW && each >= IN_A_ROW_MS;
    (is_many && is_asked_for && !is_transaction).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, evidence, place, route};

    /// So many waits of so many milliseconds each, a share of a route.
    fn waits(times: f64, each_ms: f64, share: f64) -> Evidence {
        // One request at a time.
        let finished = (10_000.0 * share / (times * each_ms)).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut evidence = evidence(
            &[route("GET /rows", 1.0, finished as u64)],
            &[place(
                "GET /rows",
                &["shop::row (src/row.rs:7)", "(waiting for the answer)"],
                share,
            )],
        );
        evidence.requests.as_mut().unwrap().places[0].in_a_row = Some(times);
        evidence
    }

    #[test]
    fn a_loop_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, IN_A_ROW, |times| waits(times, 5.0, 0.9));
        both_sides(look, IN_A_ROW_MS, |each| waits(10.0, each, 0.9));
        both_sides(look, MUCH_OF_ROUTE, |share| waits(10.0, 5.0, share));
    }
}
