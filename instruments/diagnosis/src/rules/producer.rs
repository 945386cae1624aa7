//! A stream waits for a task that makes one message after the other.

use ecosystem::WaitKind;

use crate::evidence::{Evidence, Release, Requests};
use crate::finding::{Finding, Words};
use crate::threads::seen::Inside;
use crate::thresholds::{MOST_OF_ROUTE, ONE_AFTER_ANOTHER_WEIGHT, ONE_TASK_MS, ONE_TASK_SHARE};
use crate::waiting::{Waiting, parts};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for waiting in Waiting::all(evidence) {
        if waiting.kind() != WaitKind::Channel || waiting.share < MOST_OF_ROUTE {
            continue;
        }
        // A feed that never ends waits for news, on purpose.
        let Some(route) = requests.route(&waiting.place().route) else {
            continue;
        };
        if !route.is_part || waiting.ms.is_none_or(|ms| ms < ONE_TASK_MS) {
            continue;
        }
        let Some((sender, inside)) = sender(evidence, requests, &waiting) else {
            continue;
        };
        if !inside.runs_a_set {
            let found = finding(&waiting, sender, &inside);
            findings.push(found.at(waiting.place().anchor()));
        }
    }
    findings
}

/// Returns the line that sends nearly all messages, if it is a task's, and where threads run that task.
pub(crate) fn sender<'a>(
    evidence: &Evidence,
    requests: &'a Requests,
    waiting: &Waiting,
) -> Option<(&'a str, Inside)> {
    let release = requests.release_of(waiting.place())?;
    let line = outermost_line(release).filter(|_| release.share >= ONE_TASK_SHARE)?;
    let (function, ..) = parts(line)?;
    let inside = evidence.inside(function)?;
    Some((line, inside))
}

/// Returns the service's outermost line of the code that ended a wait: the function of a task.
fn outermost_line(release: &Release) -> Option<&str> {
    let mut frames = release.by.iter().map(String::as_str);
    frames.find(|frame| parts(frame).is_some() && !frame.starts_with('('))
}

fn finding(waiting: &Waiting, sender: &str, inside: &Inside) -> Finding {
    let words = Words {
        headline: format!(
            "{} Its sender makes one message after the other, at {}.",
            waiting.headline(),
            inside.most
        ),
        seen: format!(
            "{:.1} streams wait at once, and each message is sent at {sender}. Threads run that task at {}, and poll no set \
             of futures there.",
            waiting.in_flight, inside.places
        ),
        cause: "A loop awaits each answer before it asks for the next.".to_owned(),
        fix: "If the messages do not need each other, ask for several at a time (`buffered`), or for all at once.".to_owned(),
    };
    Finding::fault(
        "producer",
        ONE_AFTER_ANOTHER_WEIGHT,
        "/debug/threads",
        words,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, evidence, of_threads, place, route};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, runs};

    const ROUTE: &str = "body of Quotes/History";

    /// Streams that wait for so many milliseconds, a share of their time, for one task.
    fn stream(ms: f64, share: f64, sent: f64, task: &[&str]) -> Evidence {
        let receives = ["tokio::sync::mpsc::Receiver::poll_recv"];
        let waits = place(ROUTE, &receives, 8.0 * share);
        let finished = (80_000.0 * share / ms).floor();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut body = route(ROUTE, 8.0, finished as u64);
        body.is_part = true;
        let mut evidence = evidence(&[body], &[waits]);
        evidence.requests.as_mut().unwrap().releases = vec![Release {
            route: ROUTE.to_owned(),
            frames: receives.map(str::to_owned).to_vec(),
            by: vec!["shop::history (src/quotes.rs:63)".to_owned()],
            share: sent,
            ..crate::evidence::Release::default()
        }];
        let worker = Thread::of("tokio worker", vec![runs(50, task)]);
        evidence.threads = of_threads(vec![worker], 0.0).threads;
        evidence
    }

    const ONE_BY_ONE: [&str; 3] = [
        WORKER,
        "shop::history::{{closure}}",
        "shop::row::{{closure}}",
    ];

    #[test]
    fn a_task_that_sends_in_turn_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, ONE_TASK_MS, |ms| stream(ms, 0.9, 1.0, &ONE_BY_ONE));
        both_sides(look, MOST_OF_ROUTE, |share| {
            stream(500.0, share, 1.0, &ONE_BY_ONE)
        });
        both_sides(look, ONE_TASK_SHARE, |sent| {
            stream(500.0, 0.9, sent, &ONE_BY_ONE)
        });
        let found = look(&stream(500.0, 0.9, 1.0, &ONE_BY_ONE)).remove(0);
        assert!(
            found.headline.contains("at shop::row::{{closure}}"),
            "{found:?}"
        );
    }

    #[test]
    fn a_task_that_asks_for_several_at_a_time_and_a_feed_are_none() {
        let buffered = [
            WORKER,
            "shop::history::{{closure}}",
            "<futures_util::stream::stream::buffered::Buffered<S>>::poll_next",
            "shop::row::{{closure}}",
        ];
        assert!(look(&stream(500.0, 0.9, 1.0, &buffered)).is_empty());
        let mut feed = stream(500.0, 0.9, 1.0, &ONE_BY_ONE);
        feed.requests.as_mut().unwrap().routes[0].finished = 0;
        assert!(look(&feed).is_empty());
    }
}
