//! Requests wait for one task that lets them go: it stands still now and then, or it has one request after the other.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Evidence, Release, Requests, Route, innermost_line};
use crate::finding::{Finding, Words};
use crate::threads::seen::Inside;
use crate::thresholds::{
    ANSWERS_IN_TURN, DROPPED, EVEN_GAP, MOST_OF_ROUTE, MUCH_OF_ROUTE, ONE_TASK_MS, ONE_TASK_QUEUE,
    ONE_TASK_SHARE, ONE_TASK_STANDSTILL, ONE_TASK_WEIGHT, SEEN_ENDS,
};
use crate::waiting::{Waiting, parts};

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    // A standstill of an overloaded service, whose clients leave, is told by how requests end.
    let is_overloaded = requests.left_share() >= DROPPED;
    for waiting in Waiting::all(evidence) {
        // A notification is waited for on purpose, as by a long poll.
        let is_of_task = matches!(waiting.kind(), WaitKind::Channel | WaitKind::Queue);
        let is_long = waiting.ms.is_none_or(|ms| ms >= ONE_TASK_MS);
        if !is_of_task || !is_long || !waiting.is_queue() || waiting.share < MUCH_OF_ROUTE {
            continue;
        }
        // A body waits for each of its pieces, and none finishes while it is sent.
        let route = requests.route(&waiting.place().route);
        let Some(route) = route.filter(|route| !route.is_part) else {
            continue;
        };
        let Some((release, by)) = released(requests, &waiting) else {
            continue;
        };
        if is_one_in_flight(&waiting, release, route) {
            let found = one_in_flight(evidence, &waiting, release, by);
            findings.push(found.at(waiting.place().anchor()));
        } else if is_one_by_one(evidence, &waiting, release, by) {
            findings.push(one_by_one(evidence, &waiting, by).at(waiting.place().anchor()));
        } else if route.standstill >= ONE_TASK_STANDSTILL
            && waiting.share >= MOST_OF_ROUTE
            && !is_overloaded
        {
            let found = stands_still(&waiting, release, by, route.standstill);
            findings.push(found.at(waiting.place().anchor()));
        }
    }
    findings
}

/// Returns whether each of the waiting ones gets one answer after the other, and does nothing else: it asks for the next when
/// it has the last.
fn is_one_in_flight(waiting: &Waiting, release: &Release, route: &Route) -> bool {
    let waiters = waiting.in_flight.max(route.ended() as f64);
    waiting.wait.is_answer_of_task()
        && waiting.share >= MOST_OF_ROUTE
        && release.wakes as f64 >= ANSWERS_IN_TURN * waiters
}

fn one_in_flight(evidence: &Evidence, waiting: &Waiting, release: &Release, by: &str) -> Finding {
    let ms = waiting.in_flight * evidence.seconds * 1e3 / release.wakes.max(1) as f64;
    let mut lines: Vec<&str> = Vec::new();
    for frame in &waiting.place().frames {
        if parts(frame).is_some() {
            lines.push(frame);
        }
    }
    let line = lines.join(" > ");
    let words = Words {
        headline: format!(
            "{}: one message is in flight at a time, at {line}: the next waits for the answer to the last.",
            waiting.routes()
        ),
        seen: format!(
            "{} at once, each waits for up to {} for each answer. {:.0} % of the answers come from {by}.",
            figures::average(waiting.in_flight),
            figures::duration(ms),
            release.share * 100.0
        ),
        cause: "Each answer is awaited before the next message is sent, so messages cannot be worked on together.".to_owned(),
        fix: "Send several, and await their answers together or in order (`buffered`).".to_owned(),
    };
    let see = "/debug/await?format=json";
    Finding::fault("one_in_flight", ONE_TASK_WEIGHT, see, words)
}

/// Returns the code that lets nearly all of the waiting requests go, and its innermost line of the service.
fn released<'a>(requests: &'a Requests, waiting: &Waiting) -> Option<(&'a Release, &'a str)> {
    let release = requests.release_of(waiting.place())?;
    let by = innermost_line(&release.by)?;
    if release.share < ONE_TASK_SHARE {
        return None;
    }
    Some((release, by))
}

/// Returns where threads run the function of the line `by`.
fn inside(evidence: &Evidence, by: &str) -> Option<Inside> {
    let (function, ..) = parts(by)?;
    evidence.inside(function)
}

/// Returns whether one task alone answers the requests that queue for it, or takes their messages, and works for one of
/// them at a time, as far as was seen.
fn is_one_by_one(evidence: &Evidence, waiting: &Waiting, release: &Release, by: &str) -> bool {
    // Only an answer is of a request of its own. A piece of news is for all who wait.
    let is_answer = waiting.wait.is_answer_of_task();
    let is_one = is_answer || waiting.kind() == WaitKind::Queue;
    let is_queue = is_one && release.tasks == 1 && waiting.in_flight >= ONE_TASK_QUEUE;
    if !is_queue {
        return false;
    }
    if let Some(inside) = inside(evidence, by)
        && inside.runs_a_set
    {
        return false;
    }
    // A task that has several at a time, or answers a batch, gives some answers at once.
    let Some(short_ms) = release.short_gap_ms else {
        return false;
    };
    let ended = waiting.ended.max(1) as f64;
    // A request may send several messages.
    let mean_ms = evidence.seconds * 1e3 / ended.max(release.wakes as f64);
    release.wakes as f64 >= SEEN_ENDS * ended && short_ms >= EVEN_GAP * mean_ms
}

fn one_by_one(evidence: &Evidence, waiting: &Waiting, by: &str) -> Finding {
    let mut seen = format!(
        "{} requests at once. The same task ended all of these waits, one after the other with a pause in between.",
        figures::average(waiting.in_flight)
    );
    let does = match waiting.kind() {
        WaitKind::Queue => "takes one message at a time",
        _ => "answers",
    };
    let mut headline = format!(
        "{} They queue for one task, which {does} at {by}",
        waiting.headline()
    );
    if let Some(inside) = inside(evidence, by) {
        headline = format!("{headline} and works at {}", inside.most);
        seen = format!("{seen} Threads run it at {}.", inside.places);
    }
    let words = Words {
        headline: format!("{headline}."),
        seen,
        cause: "The task awaits something for each message before it takes the next one out of its channel.".to_owned(),
        fix: "Spawn the work for each message, or keep several at a time (`buffer_unordered`), or have several such tasks. \
              To see what it awaits, put its future into `debug_endpoints::watch(\"NAME\", …)`."
            .to_owned(),
    };
    of(words)
}

fn stands_still(waiting: &Waiting, release: &Release, by: &str, standstill: f64) -> Finding {
    of(Words {
        headline: format!(
            "{} One place lets {:.0} % of them go: {by}.",
            waiting.headline(),
            release.share * 100.0
        ),
        seen: format!(
            "{} requests at once; for {standstill:.1} s none finished.",
            figures::average(waiting.in_flight)
        ),
        cause: "The task that lets them go does something else in between.".to_owned(),
        fix: "Look at what that task does between two messages. Put its future into \
              `debug_endpoints::watch(\"NAME\", …)` where it is spawned, and the await profile shows it."
            .to_owned(),
    })
}

fn of(words: Words) -> Finding {
    let see = "/debug/await?format=json";
    Finding::fault("one_task", ONE_TASK_WEIGHT, see, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Release;
    use crate::testing::{both_sides, cpu_samples, evidence, place, route};
    use crate::threads::testing::{WORKER, runs};
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
            release.frames = waits.map(str::to_owned).to_vec();
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
