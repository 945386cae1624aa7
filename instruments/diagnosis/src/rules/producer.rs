//! A stream waits for a task that makes one message after the other.

use ecosystem::WaitKind;

use super::table;
use crate::evidence::{Frame, Line};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::Inside;
use crate::thresholds::{MOST_OF_ROUTE, ONE_TASK_MS, ONE_TASK_SHARE};
use crate::waiting::Waiting;

/// Streams that wait for one task.
pub(crate) struct Producer {
    waiting: Waiting,
    /// The line that sends nearly all messages: the outermost one, which is the function of the task.
    sender: Line,
    /// Where threads run that task.
    inside: Inside,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<Producer> {
    let mut found = Vec::new();
    for waiting in facts.waits_of(WaitKind::Channel) {
        // A feed that never ends waits for news, on purpose.
        let is_long = waiting.ms.is_some_and(|ms| ms >= ONE_TASK_MS);
        if waiting.share < MOST_OF_ROUTE || !waiting.route.is_part || !is_long {
            continue;
        }
        let Some(release) = &waiting.release else {
            continue;
        };
        let sender = release.by.iter().find_map(Frame::line);
        let Some(sender) = sender.filter(|_| release.share >= ONE_TASK_SHARE) else {
            continue;
        };
        let Some(inside) = facts.inside(&sender.function) else {
            continue;
        };
        if !inside.runs_a_set {
            found.push(Producer {
                waiting: waiting.clone(),
                sender: sender.clone(),
                inside,
            });
        }
    }
    found
}

impl Sighting for Producer {
    fn row(&self) -> &'static Row {
        table::PRODUCER
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.waiting.anchor()]
    }

    fn headline(&self) -> String {
        format!(
            "{} Its sender makes one message after the other, at {}.",
            self.waiting.headline(),
            self.inside.most
        )
    }

    fn seen(&self) -> String {
        format!(
            "{:.1} streams wait at once, and each message is sent at {}. Threads run that task at {}, and poll no set of \
             futures there.",
            self.waiting.in_flight, self.sender, self.inside.places
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Release};
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, frames, of_threads, place, route};
    use crate::threads::Thread;
    use crate::threads::testing::{WORKER, runs};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
            frames: frames(&receives),
            by: frames(&["shop::history (src/quotes.rs:63)"]),
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
