//! Many requests make the same value at once, because the one that a cache had is missing or has expired.
//!
//! Nobody sees the arguments of a call. Three signs together tell such requests from many that ask for different things:
//! most requests of the route pass the line by, many are there at once, and at other times none is.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Frame, Line};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::{ABSENT, EQUAL_AT_ONCE, MUCH_OF_ROUTE};
use crate::waiting::Waiting;

/// Waits at one line, where many requests are at once, and at other times none.
pub(crate) struct Burst {
    line: Line,
    /// Waits at that line, the one of most requests first.
    waits: Vec<Waiting>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<Burst> {
    let mut all: Vec<Burst> = Vec::new();
    for waiting in &facts.waits {
        let Some(line) = waiting.line() else {
            continue;
        };
        if !is_work(waiting.kind()) {
            continue;
        }
        match all.iter_mut().find(|burst| burst.line == *line) {
            Some(burst) => burst.waits.push(waiting.clone()),
            None => all.push(Burst {
                line: line.clone(),
                waits: vec![waiting.clone()],
            }),
        }
    }
    all.retain(Burst::is_of_equal_work);
    all
}

impl Burst {
    fn first(&self) -> &Waiting {
        &self.waits[0]
    }

    fn in_flight(&self) -> f64 {
        self.waits.iter().map(|waiting| waiting.in_flight).sum()
    }

    fn of_route(&self) -> f64 {
        self.waits.iter().map(|waiting| waiting.share).sum()
    }

    fn is_of_equal_work(&self) -> bool {
        let ms: Option<f64> = self.waits.iter().map(|waiting| waiting.ms).sum();
        let Some(ms) = ms else { return false };
        // Those who wait for a permit do no work, and none may be the same.
        let mut waits = self.waits.iter();
        if waits.all(|waiting| waiting.kind() == WaitKind::Limit) {
            return false;
        }
        self.first().comes_in_bursts(ms)
            && self.in_flight() >= EQUAL_AT_ONCE
            && self.of_route() >= MUCH_OF_ROUTE
    }
}

impl Sighting for Burst {
    fn row(&self) -> &'static Row {
        table::EQUAL_WORK
    }

    fn share(&self) -> f64 {
        self.of_route() / 2.0
    }

    fn places(&self) -> Vec<Frame> {
        vec![Frame::Own(self.line.clone())]
    }

    fn headline(&self) -> String {
        let absent = self.first().place().absent;
        format!(
            "{}: {:.0} requests at once do work at {} that most requests do not need.",
            self.first().routes(),
            self.in_flight() / (1.0 - absent).max(ABSENT),
            self.line
        )
    }

    fn seen(&self) -> String {
        let mut waits = Vec::new();
        for waiting in &self.waits {
            waits.push(format!(
                "{} {}",
                figures::average(waiting.in_flight),
                waiting.wait.in_words()
            ));
        }
        format!(
            "For {:.0} % of the time no request is there, and half of the requests take {} or less. On average {}.",
            self.first().place().absent * 100.0,
            short(self.first().route.median_ms.unwrap_or_default()),
            waits.join(", ")
        )
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
    use crate::evidence::{Evidence, Place};
    use crate::finding::Finding;
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, place, route};
    use crate::thresholds::PASSES_BY;

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
        let mut limited = of(20.0, 0.9, 0.3, 0.0);
        let permit = [LINE, "tokio::sync::Semaphore::acquire"];
        let permit = place("GET /stats", &permit, 20.0);
        limited.requests.as_mut().unwrap().places = vec![Place {
            absent: 0.3,
            ..permit
        }];
        assert!(look(&limited).is_empty(), "nobody is seen at work");
    }
}
