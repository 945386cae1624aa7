//! Requests that end badly: given up by their clients, cut by a time limit, or answered with an error of this service.

use crate::evidence::{Evidence, Requests, Route};
use crate::finding::{Finding, Words};
use crate::thresholds::{
    DROPPED_MOST, FEWEST_BAD, GIVEN_UP_WEIGHT, SERVER_ERRORS, SERVER_ERRORS_WEIGHT,
};

/// Most requests are given up, and work goes on for nobody.
pub(crate) fn given_up(evidence: &Evidence) -> Vec<Finding> {
    let Some(requests) = &evidence.requests else {
        return Vec::new();
    };
    let cut = requests.dropped() + requests.answers().timed_out;
    let ended = requests.dropped() + requests.finished();
    if cut < FEWEST_BAD || (cut as f64) < DROPPED_MOST * ended as f64 {
        return Vec::new();
    }
    let mut seen = String::new();
    if let Some(place) = where_most_are(requests) {
        seen = format!("They were at {place}.");
    }
    let threads = evidence.threads.as_ref();
    if let Some(place) = threads.and_then(|threads| threads.computing()) {
        seen = format!("{seen} Threads still compute: {place}.");
    }
    let words = Words {
        headline: format!(
            "{cut} of {ended} requests were given up{}, before they had an answer.",
            after(requests)
        ),
        seen: seen.trim().to_owned(),
        cause: "Clients leave, or a time limit cuts requests, while the work for them goes on in a queue, a task or a \
                thread: the others wait behind work for nobody."
            .to_owned(),
        fix: "Drop work whose request is gone: ask `is_closed()` of its reply channel before each job, or abort its \
              task. Let the queue be no longer than clients wait."
            .to_owned(),
    };
    vec![Finding::fault(
        "given_up",
        GIVEN_UP_WEIGHT,
        "/debug/await",
        words,
    )]
}

/// The time after which requests were dropped, of the route with most of them: ` after 250 ms`.
pub(crate) fn after(requests: &Requests) -> String {
    let most = requests.whole().max_by_key(|route| route.dropped);
    match most.and_then(|route| route.dropped_after_ms) {
        Some(ms) => format!(" after {ms:.0} ms on average"),
        None => String::new(),
    }
}

/// The line where most requests are.
fn where_most_are(requests: &Requests) -> Option<String> {
    let place = requests
        .places
        .iter()
        .find(|place| place.line().is_some())?;
    Some(place.frames.join("; "))
}

/// Answers that are errors of this service. One that says that there is no room is on purpose.
pub(crate) fn server_errors(evidence: &Evidence) -> Vec<Finding> {
    let Some(requests) = &evidence.requests else {
        return Vec::new();
    };
    let errors = |route: &Route| {
        let answers = route.answers;
        answers
            .server_errors
            .saturating_sub(answers.refused + answers.timed_out)
    };
    let all: u64 = requests.whole().map(errors).sum();
    let finished = requests.finished();
    if all < FEWEST_BAD || (all as f64) < SERVER_ERRORS * finished as f64 {
        return Vec::new();
    }
    let Some(worst) = requests.whole().max_by_key(|route| errors(route)) else {
        return Vec::new();
    };
    let words = Words {
        headline: format!("{all} of {finished} answers are errors of this service (5xx)."),
        seen: format!("{} of them are of {}.", errors(worst), worst.name),
        cause:
            "Something that the handler needs fails: a connection, a file, a time limit of its own."
                .to_owned(),
        fix: "Look for the errors in its log; an error is often fast, and hides in latencies."
            .to_owned(),
    };
    vec![Finding::fault(
        "server_errors",
        SERVER_ERRORS_WEIGHT,
        "/debug/await?format=json",
        words,
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Answers;
    use crate::testing::{evidence, place, route};

    fn ended(finished: u64, dropped: u64, answers: Answers) -> Evidence {
        let mut route = route("GET /generate", 10.0, finished);
        (route.dropped, route.answers) = (dropped, answers);
        route.dropped_after_ms = Some(250.0);
        let waits = [
            "shop::generate (src/generate.rs:15)",
            "tokio::sync::oneshot::Receiver",
        ];
        evidence(&[route], &[place("GET /generate", &waits, 10.0)])
    }

    #[test]
    fn work_for_nobody_is_told_on_the_right_side_of_each_threshold() {
        let none = Answers::default();
        assert!(given_up(&ended(6, 94, none)).is_empty());
        let found = given_up(&ended(5, 95, none)).remove(0);
        assert!(
            found
                .headline
                .starts_with("95 of 100 requests were given up after 250 ms on average")
                && found.headline.ends_with("before they had an answer."),
            "{found:?}"
        );
        assert!(found.seen.contains("src/generate.rs:15"), "{found:?}");
        assert!(given_up(&ended(0, FEWEST_BAD - 1, none)).is_empty());
        assert!(!given_up(&ended(0, FEWEST_BAD, none)).is_empty());
        let cut = Answers {
            server_errors: 98,
            timed_out: 98,
            ..none
        };
        assert!(
            !given_up(&ended(100, 0, cut)).is_empty(),
            "by a limit inside"
        );
    }

    #[test]
    fn errors_are_told_on_the_right_side_of_each_threshold() {
        let errors = |server_errors, refused| Answers {
            server_errors,
            refused,
            ..Answers::default()
        };
        assert!(server_errors(&ended(1000, 0, errors(49, 0))).is_empty());
        assert!(!server_errors(&ended(1000, 0, errors(50, 0))).is_empty());
        assert!(server_errors(&ended(10, 0, errors(FEWEST_BAD - 1, 0))).is_empty());
        let shed = ended(1000, 0, errors(900, 900));
        assert!(server_errors(&shed).is_empty(), "load is shed on purpose");
    }
}
