//! Requests wait for one statement of `SQLite`, for which it computes long: it reads many rows.

use ecosystem::PartMeaning;

use super::table;
use crate::evidence::{Frame, Requests};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::threads::seen::passes;
use crate::thresholds::{FEWEST_SAMPLES, IN_A_ROW, SQLITE_LINE, SQLITE_MS, SQLITE_SHARE};
use crate::waiting::Waiting;

/// A statement that reads many rows.
pub(crate) struct Statement {
    waiting: Waiting,
    /// CPU time of `SQLite` for each request, in milliseconds.
    each_ms: f64,
    /// Share of all samples of the CPU time.
    share: f64,
    /// Samples of the CPU time.
    all: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Option<Statement> {
    let cpu = facts.evidence.cpu.as_deref()?;
    let (mut all, mut of_sqlite) = (0, 0);
    for stack in cpu.stacks() {
        all += stack.samples;
        if passes(stack, PartMeaning::SqliteRuns) {
            of_sqlite += stack.samples;
        }
    }
    let share = of_sqlite as f64 / all.max(1) as f64;
    if of_sqlite < FEWEST_SAMPLES || share < SQLITE_SHARE {
        return None;
    }
    let waiting = only_line(facts)?;
    // Many short statements in a row are told as that.
    let is_in_a_row = waiting.in_a_row.is_some_and(|times| times >= IN_A_ROW);
    let ended = ended(waiting, facts.requests?);
    let each_ms = of_sqlite as f64 * cpu.period_s * 1e3 / ended.max(1) as f64;
    if !waiting.is_much() || is_in_a_row || each_ms < SQLITE_MS {
        return None;
    }
    Some(Statement {
        waiting: waiting.clone(),
        each_ms,
        share,
        all,
    })
}

/// Returns the number of requests that ended on all routes that wait there, even on those that hardly do.
fn ended(waiting: &Waiting, requests: &Requests) -> u64 {
    let mut routes: Vec<&str> = Vec::new();
    let mut ended = 0;
    for place in &waiting.places {
        if let Some(route) = requests.route(&place.route)
            && !routes.contains(&route.name.as_str())
        {
            routes.push(&route.name);
            ended += route.ended();
        }
    }
    ended
}

/// Returns the waits for `SQLite` at one line, if nearly all of its CPU time must be for that line.
fn only_line<'a>(facts: &'a Facts<'_>) -> Option<&'a Waiting> {
    let mut first: Option<&Waiting> = None;
    let mut in_flight = 0.0;
    for waiting in &facts.waits {
        if waiting.wait.is_of_sqlite() {
            in_flight += waiting.in_flight;
            // Those with most requests are first.
            first = first.or(Some(waiting));
        }
    }
    let first = first?;
    first.line()?;
    (first.in_flight >= SQLITE_LINE * in_flight).then_some(first)
}

impl Sighting for Statement {
    fn row(&self) -> &'static Row {
        table::SQLITE_COMPUTES
    }

    fn places(&self) -> Vec<Frame> {
        vec![self.waiting.anchor()]
    }

    fn headline(&self) -> String {
        format!("{} SQLite computes for it.", self.waiting.headline())
    }

    fn seen(&self) -> String {
        format!(
            "SQLite computes about {:.1} ms for each of these requests: {:.0} % of {} samples of the CPU time.",
            self.each_ms,
            self.share * 100.0,
            self.all
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::evidence::Evidence;
    use crate::finding::Finding;
    use crate::rules::{judge, told};
    use crate::testing::{both_sides, cpu_samples, evidence, place, route};
    use crate::threads::testing::runs;

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

    const LINE: &str = "shop::flag (src/flags.rs:21)";

    /// A thousand requests in ten seconds, with so many of a hundred samples in `SQLite`, and so many requests at another line.
    fn with(samples: u64, others: f64, in_a_row: f64) -> Evidence {
        let routes = [route("GET /a", 0.1, 1000), route("GET /b", others, 100)];
        let mut waits = place("GET /a", &[LINE, "sqlx_sqlite"], 0.1);
        waits.in_a_row = Some(in_a_row);
        let other = ["shop::list (src/list.rs:9)", "sqlx_sqlite"];
        let places = [waits, place("GET /b", &other, others)];
        let mut evidence = evidence(&routes, &places);
        let stacks = vec![
            runs(
                samples,
                &["sqlx_sqlite::worker", "sqlite3_step", "sqlite3BtreeNext"],
            ),
            runs(100 - samples, &["shop::other"]),
        ];
        let mut cpu = cpu_samples(stacks);
        // The workers of sqlx drive no tasks.
        cpu.threads[0].is_runtime = false;
        evidence.cpu = Some(Arc::new(cpu));
        evidence
    }

    #[test]
    fn a_statement_that_reads_many_rows_is_told_on_the_right_side_of_each_threshold() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        both_sides(look, SQLITE_SHARE, |share| {
            with((share * 100.0) as u64, 0.0, 1.0)
        });
        let told = |evidence: &Evidence| !look(evidence).is_empty();
        let at = |ms: f64| {
            let mut evidence = with(90, 0.0, 1.0);
            let cpu = Arc::get_mut(evidence.cpu.as_mut().unwrap()).unwrap();
            cpu.period_s = ms / 90.0 + 1e-9;
            evidence
        };
        assert!(told(&at(SQLITE_MS)) && !told(&at(SQLITE_MS * 0.99)));
        let others = 0.1 / SQLITE_LINE - 0.1;
        assert!(told(&with(90, others * 0.99, 1.0)));
        assert!(
            !told(&with(90, others * 1.01, 1.0)),
            "whose time it is, nobody knows"
        );
        assert!(told(&with(90, 0.0, IN_A_ROW * 0.99)) && !told(&with(90, 0.0, IN_A_ROW)));
    }

    #[test]
    fn the_time_of_a_statement_is_shared_by_the_requests_of_all_its_routes() {
        let mut evidence = with(90, 0.0, 1.0);
        let requests = evidence.requests.as_mut().unwrap();
        // Of this route, few were seen to wait.
        requests.routes.push(route("GET /c", 0.1, 2000));
        requests
            .places
            .push(place("GET /c", &[LINE, "sqlx_sqlite"], 0.01));
        let found = look(&evidence).remove(0);
        // 90 samples of 10 ms, of 3000 requests.
        assert!(found.seen.contains("about 0.3 ms for each"), "{found:?}");
    }

    #[test]
    fn the_wait_is_told_once() {
        let evidence = with(90, 0.0, 1.0);
        let found = look(&evidence).remove(0);
        assert!(
            found
                .headline
                .contains("waiting for an answer of SQLite at shop::flag (src/flags.rs:21)"),
            "{found:?}"
        );
        let kinds: Vec<_> = judge(&Facts::of(&evidence))
            .iter()
            .map(|finding| finding.kind)
            .collect();
        assert_eq!(kinds, ["sqlite_computes"]);
    }
}
