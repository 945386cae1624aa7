//! Requests wait for one task that lets them go: it stands still now and then, or it has one request after the other.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Frame, Line, Release, innermost_line};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::Inside;
use crate::thresholds::{
    ANSWERS_IN_TURN, DROPPED, EVEN_GAP, MOST_OF_ROUTE, MUCH_OF_ROUTE, ONE_TASK_MS, ONE_TASK_QUEUE,
    ONE_TASK_SHARE, ONE_TASK_STANDSTILL, SEEN_ENDS,
};
use crate::waiting::Waiting;

/// Requests that wait for one task.
pub(crate) struct OneTask {
    waiting: Waiting,
    /// Share of the waits that the task ends.
    ends: f64,
    /// The line at which it does.
    by: Line,
    what: What,
}

enum What {
    /// Each of the waiting ones gets one answer after the other, and waits for each so many milliseconds.
    OneInFlight(f64),
    /// It answers or takes one message after the other. Threads run it there, as far as that was seen.
    OneByOne(Option<Inside>),
    /// None of the requests finished for so many seconds.
    StandsStill(f64),
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<OneTask> {
    let mut found = Vec::new();
    let Some(requests) = facts.requests else {
        return found;
    };
    // A standstill of an overloaded service, whose clients leave, is told by how requests end.
    let is_overloaded = requests.left_share() >= DROPPED;
    for waiting in &facts.waits {
        // A notification is waited for on purpose, as by a long poll.
        let is_of_task = matches!(waiting.kind(), WaitKind::Channel | WaitKind::Queue);
        let is_long = waiting.ms.is_none_or(|ms| ms >= ONE_TASK_MS);
        let is_much = waiting.is_queue() && waiting.share >= MUCH_OF_ROUTE;
        // A body waits for each of its pieces, and none finishes while it is sent.
        let is_whole = !waiting.route.is_part && !waiting.route.name.is_empty();
        if !is_of_task || !is_long || !is_much || !is_whole {
            continue;
        }
        let Some(release) = &waiting.release else {
            continue;
        };
        let by = innermost_line(&release.by);
        let Some(by) = by.filter(|_| release.share >= ONE_TASK_SHARE) else {
            continue;
        };
        let inside = facts.inside(&by.function);
        let what = if is_one_in_flight(waiting, release) {
            let wakes = release.wakes.max(1) as f64;
            What::OneInFlight(waiting.in_flight * facts.evidence.seconds * 1e3 / wakes)
        } else if is_one_by_one(facts, waiting, release, inside.as_ref()) {
            What::OneByOne(inside)
        } else if waiting.route.standstill >= ONE_TASK_STANDSTILL
            && waiting.share >= MOST_OF_ROUTE
            && !is_overloaded
        {
            What::StandsStill(waiting.route.standstill)
        } else {
            continue;
        };
        found.push(OneTask {
            ends: release.share,
            by: by.clone(),
            what,
            waiting: waiting.clone(),
        });
    }
    found
}

/// Returns whether each of the waiting ones gets one answer after the other, and does nothing else: it asks for the next when
/// it has the last.
fn is_one_in_flight(waiting: &Waiting, release: &Release) -> bool {
    let waiters = waiting.in_flight.max(waiting.route.ended() as f64);
    // Short requests are seen at few of their answers; the profile counts those that follow each other.
    let in_turn = (release.wakes as f64 / waiters).max(waiting.in_a_row.unwrap_or_default());
    waiting.wait.is_answer_of_task() && waiting.share >= MOST_OF_ROUTE && in_turn >= ANSWERS_IN_TURN
}

/// Returns whether one task alone answers the requests that queue for it, or takes their messages, and works for one of
/// them at a time, as far as was seen.
fn is_one_by_one(
    facts: &Facts<'_>,
    waiting: &Waiting,
    release: &Release,
    inside: Option<&Inside>,
) -> bool {
    // Only an answer is of a request of its own. A piece of news is for all who wait.
    let is_answer = waiting.wait.is_answer_of_task();
    let is_one = is_answer || waiting.kind() == WaitKind::Queue;
    let is_queue = is_one && release.tasks == 1 && waiting.in_flight >= ONE_TASK_QUEUE;
    if !is_queue || inside.is_some_and(|inside| inside.runs_a_set) {
        return false;
    }
    // A task that has several at a time, or answers a batch, gives some answers at once.
    let Some(short_ms) = release.short_gap_ms else {
        return false;
    };
    let ended = waiting.ended.max(1) as f64;
    // A request may send several messages.
    let mean_ms = facts.evidence.seconds * 1e3 / ended.max(release.wakes as f64);
    release.wakes as f64 >= SEEN_ENDS * ended && short_ms >= EVEN_GAP * mean_ms
}

impl Sighting for OneTask {
    fn row(&self) -> &'static Row {
        match &self.what {
            What::OneInFlight(_) => table::ONE_IN_FLIGHT,
            What::OneByOne(_) => table::ONE_BY_ONE,
            What::StandsStill(_) => table::ONE_STANDS_STILL,
        }
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.waiting.anchor()]
    }

    fn headline(&self) -> String {
        let headline = self.waiting.headline();
        let by = &self.by;
        match &self.what {
            What::OneInFlight(_) => {
                let mut lines = Vec::new();
                for line in self.waiting.place().frames.iter().filter_map(Frame::line) {
                    lines.push(line.to_string());
                }
                format!(
                    "{}: one message is in flight at a time, at {}: the next waits for the answer to the last.",
                    self.waiting.routes(),
                    lines.join(" > ")
                )
            }
            What::OneByOne(inside) => {
                let does = match self.waiting.kind() {
                    WaitKind::Queue => "takes one message at a time",
                    _ => "answers",
                };
                let works = inside.as_ref();
                let works = works.map(|inside| format!(" and works at {}", inside.most));
                let works = works.unwrap_or_default();
                format!("{headline} They queue for one task, which {does} at {by}{works}.")
            }
            What::StandsStill(_) => format!(
                "{headline} One place lets {:.0} % of them go: {by}.",
                self.ends * 100.0
            ),
        }
    }

    fn seen(&self) -> String {
        let at_once = figures::average(self.waiting.in_flight);
        match &self.what {
            What::OneInFlight(ms) => format!(
                "{at_once} at once, each waits for up to {} for each answer. {:.0} % of the answers come from {}.",
                figures::duration(*ms),
                self.ends * 100.0,
                self.by
            ),
            What::OneByOne(inside) => {
                let runs = inside.as_ref();
                let runs = runs.map(|inside| format!(" Threads run it at {}.", inside.places));
                format!(
                    "{at_once} requests at once. The same task ended all of these waits, one after the other with a pause in \
                     between.{}",
                    runs.unwrap_or_default()
                )
            }
            What::StandsStill(seconds) => {
                format!("{at_once} requests at once; for {seconds:.1} s none finished.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::Release;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, cpu_samples, evidence, frames, place, route};
    use crate::threads::testing::{WORKER, runs};
    use crate::thresholds::QUEUE;

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
            frames: frames(&waits),
            by: frames(&["shop::supervise (src/status.rs:31)"]),
            share: released,
            tasks: 2,
            ..Release::default()
        }];
        evidence
    }

    #[test]
    fn a_task_that_answers_one_by_one_is_told_although_it_never_stands_still() {
        // In 10 s, as many requests end as are seen, in even gaps or in others.
        let with = |tasks, seen: f64, gap: f64, in_flight: f64| {
            let mut evidence = of(in_flight, 0.9, 0.0, 50.0, 1.0);
            let requests = evidence.requests.as_mut().unwrap();
            let ended = requests.routes[0].finished as f64;
            let release = &mut requests.releases[0];
            release.tasks = tasks;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let wakes = (seen * ended).ceil() as usize;
            release.wakes = wakes;
            release.short_gap_ms = Some(gap * 10_000.0 / ended);
            evidence
        };
        both_sides(look, ONE_TASK_QUEUE, |many| with(1, 1.0, 0.8, many));
        both_sides(look, EVEN_GAP, |gap| with(1, 1.0, gap, 8.0));
        let told = |tasks, seen| !look(&with(tasks, seen, 0.8, 8.0)).is_empty();
        assert!(told(1, SEEN_ENDS) && !told(1, SEEN_ENDS * 0.99));
        assert!(!told(2, 1.0), "a task for each message");
        assert!(!told(0, 1.0), "nobody knows");
        let mut several = with(1, 1.0, 0.8, 8.0);
        let buffered = "futures_util::stream::stream::buffer_unordered::BufferUnordered::poll_next";
        let stack = runs(9, &[WORKER, "shop::supervise", buffered, "shop::ask"]);
        several.cpu = Some(std::sync::Arc::new(cpu_samples(vec![stack])));
        assert!(look(&several).is_empty(), "several at a time");
    }

    #[test]
    fn a_receiver_that_takes_one_message_at_a_time_is_told_and_one_that_takes_many_is_not() {
        // A request sends three messages.
        let with = |gap: f64| {
            let mut evidence = of(8.0, 0.9, 0.0, 50.0, 1.0);
            let requests = evidence.requests.as_mut().unwrap();
            let waits = [
                "shop::transfer (src/audit.rs:51)",
                "tokio::sync::mpsc::Sender::send",
            ];
            requests.places = vec![place("GET /status", &waits, 8.0)];
            #[allow(clippy::cast_possible_truncation)]
            let messages = 3 * requests.routes[0].finished as usize;
            let release = &mut requests.releases[0];
            release.frames = frames(&waits);
            (release.tasks, release.wakes) = (1, messages);
            release.short_gap_ms = Some(gap * 10_000.0 / messages as f64);
            evidence
        };
        both_sides(look, EVEN_GAP * 1.000_001, with);
        let found = look(&with(0.8)).remove(0);
        assert!(
            found
                .headline
                .contains("one task, which takes one message at a time at shop::supervise"),
            "{found:?}"
        );
    }

    #[test]
    fn a_long_poll_and_a_body_in_pieces_stand_still_on_purpose() {
        let told = |leaf: &str, is_part| {
            let mut evidence = of(8.0, 0.9, 1.0, 50.0, 1.0);
            let requests = evidence.requests.as_mut().unwrap();
            requests.routes[0].is_part = is_part;
            let waits = ["shop::status (src/status.rs:15)", leaf];
            requests.places = vec![place("GET /status", &waits, 8.0)];
            requests.releases[0].frames = frames(&waits);
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
