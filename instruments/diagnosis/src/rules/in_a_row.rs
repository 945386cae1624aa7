//! A request waits for the same thing many times, one after the other: a query for each row.

use ecosystem::{PartMeaning, WaitKind};

use super::table;
use crate::evidence::{Frame, Requests};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::{ENDED_BY_TIMER, IN_A_ROW, IN_A_ROW_MS, LISTED, MUCH_OF_ROUTE, SMALL_JOBS};
use crate::waiting::Waiting;

/// Waits at one line that follow each other within a request.
pub(crate) struct InARow {
    /// Waits at that line, the one with most requests first.
    waits: Vec<Waiting>,
    /// Number of such waits in a request.
    times: f64,
    /// Share of the routes' time that they take.
    share: f64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<InARow> {
    let mut all: Vec<InARow> = Vec::new();
    let Some(requests) = facts.requests else {
        return all;
    };
    for waiting in &facts.waits {
        if !waiting.wait.is_asked_for() {
            continue;
        }
        let line = waiting.line();
        let times = waiting.in_a_row.unwrap_or_default();
        let mut rows = all.iter_mut();
        match rows.find(|row| line.is_some() && row.waits[0].line() == line) {
            Some(row) => {
                row.times = row.times.max(times);
                row.waits.push(waiting.clone());
            }
            None => all.push(InARow {
                waits: vec![waiting.clone()],
                times,
                share: 0.0,
            }),
        }
    }
    for row in &mut all {
        row.share = row.part_of_time(requests);
    }
    all.retain(|row| row.share >= MUCH_OF_ROUTE && (row.is_of_calls() || row.is_of_small_jobs()));
    all
}

impl InARow {
    /// Returns the share of the routes' time that these waits take. Each of them ends with a wake-up, so they have their
    /// part of the time in which requests are ready, run, or could not be seen.
    fn part_of_time(&self, requests: &Requests) -> f64 {
        let share: f64 = self.waits.iter().map(|waiting| waiting.share).sum();
        let (mut placed, mut all) = (0.0, 0.0);
        for place in &requests.places {
            let mut own = self.waits[0].places.iter();
            if own.any(|own| own.route == place.route) {
                all += place.in_flight;
                if place.line().is_some() {
                    placed += place.in_flight;
                }
            }
        }
        let is_anew = self.waits.iter().any(Waiting::is_asked_anew);
        let is_much = share >= LISTED && (is_anew || self.is_of_small_jobs());
        if is_much && placed > 0.0 {
            share * all / placed
        } else {
            share
        }
    }

    /// Returns whether each reads or writes a piece of one file, by a job of the blocking pool. A body is sent piece by piece.
    fn is_of_small_jobs(&self) -> bool {
        let mut waits = self.waits.iter();
        let are_of_file = waits.all(|waiting| {
            let mut frames = waiting.place().frames.iter().filter_map(Frame::function);
            let is_of_file = frames.any(|function| PartMeaning::FileJobs.fits(function));
            let is_own = waiting.line().is_some() && !waiting.route.is_part;
            waiting.kind() == WaitKind::BlockingPool && is_of_file && is_own
        });
        are_of_file && self.times >= SMALL_JOBS
    }

    /// Returns whether these are separate calls: there are many, and each takes long or has another wait before the next.
    /// Calls that a time limit ends are tries of one call.
    fn is_of_calls(&self) -> bool {
        let mut ms = 0.0;
        for waiting in &self.waits {
            if waiting.ended_by_timer >= ENDED_BY_TIMER {
                return false;
            }
            ms += waiting.ms.unwrap_or_default();
        }
        let is_long = ms / self.times.max(1.0) >= IN_A_ROW_MS;
        let is_anew = self.waits.iter().any(Waiting::is_asked_anew);
        self.times >= IN_A_ROW && (is_long || is_anew && ms >= IN_A_ROW_MS)
    }
}

impl Sighting for InARow {
    fn row(&self) -> &'static Row {
        if self.is_of_small_jobs() {
            table::SMALL_JOBS
        } else {
            table::IN_A_ROW
        }
    }

    fn share(&self) -> f64 {
        self.share.min(1.0) / 2.0
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.waits[0].anchor()]
    }

    fn headline(&self) -> String {
        format!(
            "{} About {:.0} such waits, perhaps more, follow each other in a request.",
            self.waits[0].headline(),
            self.times
        )
    }

    fn seen(&self) -> String {
        format!(
            "{:.0} % of a request's time goes to them, with the wake-ups that they take. {}",
            self.share * 100.0,
            self.waits[0].seen()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, frames, place, route};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const LINE: &str = "shop::row (src/row.rs:7)";

    /// So many waits of so many milliseconds each, a share of a route.
    fn waits(times: f64, each_ms: f64, share: f64) -> Evidence {
        // One request at a time.
        let finished = (10_000.0 * share / (times * each_ms)).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut evidence = evidence(
            &[route("GET /rows", 1.0, finished as u64)],
            &[place(
                "GET /rows",
                &[LINE, "(waiting for the answer)"],
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

    #[test]
    fn tries_of_one_call_are_no_loop() {
        let told = |share| {
            let mut evidence = waits(10.0, 5.0, 0.9);
            let requests = evidence.requests.as_mut().unwrap();
            requests.releases = vec![crate::evidence::Release {
                route: "GET /rows".to_owned(),
                frames: requests.places[0].frames.clone(),
                by: frames(&["(a timer)"]),
                share,
                ..crate::evidence::Release::default()
            }];
            !look(&evidence).is_empty()
        };
        assert!(told(ENDED_BY_TIMER * 0.99) && !told(ENDED_BY_TIMER));
    }

    /// Thirty short statements: of each tenth of a request's time, so many are at their line, and the rest is ready.
    fn statements(share: f64, is_asked_anew: bool) -> Evidence {
        let mut waits = place("GET /basket", &[LINE, "sqlx_postgres"], share);
        (waits.in_a_row, waits.is_asked_anew) = (Some(30.0), is_asked_anew);
        let ready = place(
            "GET /basket",
            &["(ready: woken and not yet polled)"],
            1.0 - share,
        );
        evidence(&[route("GET /basket", 1.0, 1000)], &[waits, ready])
    }

    #[test]
    fn many_jobs_for_one_file_want_a_buffer() {
        let jobs = |times: f64, file: &str| {
            let pool = "(waiting for the blocking pool: queued or running)";
            let mut waits = place("GET /terms", &[LINE, file, pool], 0.2);
            waits.in_a_row = Some(times);
            let ready = place("GET /terms", &["(ready: woken and not yet polled)"], 0.8);
            evidence(&[route("GET /terms", 1.0, 1000)], &[waits, ready])
        };
        let read = "tokio::fs::file::File::poll_read";
        both_sides(look, SMALL_JOBS, |times| jobs(times, read));
        let found = look(&jobs(300.0, read)).remove(0);
        assert_eq!(found.kind, "small_reads");
        assert!(found.fix.contains("BufReader"), "{found:?}");
        assert!(
            look(&jobs(300.0, "tokio::fs::metadata")).is_empty(),
            "many files"
        );
    }

    #[test]
    fn short_statements_have_their_wake_ups_and_pieces_of_one_answer_are_none() {
        both_sides(look, LISTED, |share| statements(share, true));
        let found = look(&statements(0.2, true)).remove(0);
        assert!(
            found
                .headline
                .ends_with("About 30 such waits, perhaps more, follow each other in a request."),
            "{found:?}"
        );
        assert!(look(&statements(0.2, false)).is_empty());
        // 0.2 ms each, in pieces that come one after the other.
        assert!(look(&statements(0.9, false)).is_empty());
    }
}
