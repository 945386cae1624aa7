//! Many requests make the same value at once, because the one that a cache had is missing or has expired.
//!
//! Nobody sees the arguments of a call. Three signs together tell such requests from many that ask for different things:
//! most requests of the route pass the line by, many are there at once, and at other times none is.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Evidence, Requests};
use crate::finding::{Finding, Words};
use crate::thresholds::{ABSENT, EQUAL_AT_ONCE, EQUAL_WORK_WEIGHT, MUCH_OF_ROUTE};
use crate::waiting::Waiting;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for burst in Burst::all(evidence, requests) {
        findings.push(burst.finding(requests));
    }
    findings
}

/// Waits at one line, where many requests are at once, and at other times none.
struct Burst {
    /// Waits at that line, the one of most requests first.
    waits: Vec<Waiting>,
}

impl Burst {
    fn all(evidence: &Evidence, requests: &Requests) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for waiting in Waiting::all(evidence) {
            let Some(line) = waiting.place().line() else {
                continue;
            };
            if !is_work(waiting.kind()) {
                continue;
            }
            let mut bursts = all.iter_mut();
            match bursts.find(|burst| burst.first().place().line() == Some(line)) {
                Some(burst) => burst.waits.push(waiting),
                None => all.push(Self {
                    waits: vec![waiting],
                }),
            }
        }
        all.retain(|burst| burst.is_of_equal_work(requests));
        all
    }

    fn first(&self) -> &Waiting {
        &self.waits[0]
    }

    fn is_of_equal_work(&self, requests: &Requests) -> bool {
        let in_flight: f64 = self.waits.iter().map(|waiting| waiting.in_flight).sum();
        let share: f64 = self.waits.iter().map(|waiting| waiting.share).sum();
        let ms: Option<f64> = self.waits.iter().map(|waiting| waiting.ms).sum();
        let Some(ms) = ms else { return false };
        let in_bursts = self.first().comes_in_bursts(requests, ms);
        in_bursts && in_flight >= EQUAL_AT_ONCE && share >= MUCH_OF_ROUTE
    }

    fn finding(&self, requests: &Requests) -> Finding {
        let first = self.first();
        let in_flight: f64 = self.waits.iter().map(|waiting| waiting.in_flight).sum();
        let share: f64 = self.waits.iter().map(|waiting| waiting.share).sum();
        let line = first.place().line().unwrap_or("an unknown place");
        let absent = first.place().absent;
        let mut waits = Vec::new();
        for waiting in &self.waits {
            waits.push(format!(
                "{} {}",
                figures::average(waiting.in_flight),
                waiting.wait.in_words()
            ));
        }
        let median = first.median_ms(requests).unwrap_or_default();
        let words = Words {
            headline: format!(
                "{}: {:.0} requests at once do work at {line} that most requests do not need.",
                first.routes(),
                in_flight / (1.0 - absent).max(ABSENT)
            ),
            seen: format!(
                "For {:.0} % of the time nobody is there, and half of the requests take {} or less. On average {}.",
                absent * 100.0,
                short(median),
                waits.join(", ")
            ),
            cause: "An entry of a cache expires or is missing, and each request that misses it makes it anew.".to_owned(),
            fix: "Let one request make it while the others wait for that (a single flight: `OnceCell`, moka's `get_with`), \
                  or renew it before it expires."
                .to_owned(),
        };
        let weight = EQUAL_WORK_WEIGHT + share / 2.0;
        Finding::fault("equal_work", weight, "/debug/await", words).at(line)
    }
}

/// Formats a time that may be short: `0.02 ms`, `12 ms`.
fn short(ms: f64) -> String {
    if ms < 0.01 {
        "0.01 ms".to_owned()
    } else if ms < 1.0 {
        format!("{ms:.2} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

/// Returns whether requests wait there for work that is done for them.
fn is_work(kind: WaitKind) -> bool {
    use WaitKind::{
        Answer, AnswerOrStream, BlockingPool, Database, Limit, NewConnection, Pool, Task,
    };
    matches!(
        kind,
        Answer | AnswerOrStream | BlockingPool | Database | Limit | NewConnection | Pool | Task
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{both_sides, evidence, place, route};
    use crate::thresholds::PASSES_BY;

    const LINE: &str = "shop::compute (src/stats.rs:28)";
    const POOL: &str = "(waiting for a connection of the pool)";

    /// Requests at one line: those at once, their share of the route, the share of the time without any, and the median
    /// as a share of the mean time there.
    fn of(in_flight: f64, share: f64, absent: f64, median: f64) -> Evidence {
        let mut places = vec![
            place("GET /stats", &[LINE, POOL], in_flight * 0.8),
            place("GET /stats", &[LINE, "sqlx_postgres"], in_flight * 0.2),
        ];
        for place in &mut places {
            place.absent = absent;
        }
        let mut route = route("GET /stats", in_flight / share, 1000);
        // The look takes 10 s.
        route.median_ms = Some(median * in_flight * 10.0);
        evidence(&[route], &places)
    }

    #[test]
    fn equal_work_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, EQUAL_AT_ONCE, |many| of(many, 0.9, 0.3, 0.0));
        both_sides(look, MUCH_OF_ROUTE, |share| of(20.0, share, 0.3, 0.0));
        both_sides(look, ABSENT, |absent| of(20.0, 0.9, absent, 0.0));
        assert!(look(&of(20.0, 0.9, 0.3, PASSES_BY * 1.01)).is_empty());
        let found = look(&of(20.0, 0.9, 0.5, PASSES_BY * 0.99)).remove(0);
        assert_eq!(
            found.headline,
            "GET /stats: 40 requests at once do work at shop::compute (src/stats.rs:28) that most requests do not need."
        );
    }
}
