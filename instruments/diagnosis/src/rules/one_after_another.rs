//! A request awaits one call after the other, at several lines of one function, where it could await them together.

use ecosystem::{WaitKind, figures};

use crate::evidence::{Evidence, Place, Requests, Route};
use crate::finding::{Finding, Level, Words};
use crate::thresholds::{FOLLOWED, LISTED_LINE, ONE_AFTER_ANOTHER_WEIGHT, TOGETHER};
use crate::waiting::parts;

pub(crate) fn look(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(requests) = &evidence.requests else {
        return findings;
    };
    for route in &requests.routes {
        let chains = Chain::all(requests, route).into_iter();
        let most = chains.max_by(|a, b| a.saved().total_cmp(&b.saved()));
        let Some(chain) = most else { continue };
        if chain.saved() >= TOGETHER && chain.followed(requests) >= FOLLOWED {
            findings.push(chain.finding(evidence));
        }
    }
    findings
}

/// Calls of a route that one function awaits, by line.
struct Chain<'a> {
    route: &'a Route,
    /// Frames that called the function.
    outside: &'a [String],
    function: &'a str,
    lines: Vec<Line<'a>>,
}

/// Calls that are awaited at one line.
struct Line<'a> {
    frame: &'a str,
    places: Vec<&'a Place>,
}

impl Line<'_> {
    /// Returns the requests there, averaged over time.
    fn in_flight(&self) -> f64 {
        self.places.iter().map(|place| place.in_flight).sum()
    }
}

impl<'a> Chain<'a> {
    /// Returns a chain for each function of the service in which requests of the route await calls.
    fn all(requests: &'a Requests, route: &'a Route) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for place in &requests.places {
            if place.route != route.name || !is_call(place) {
                continue;
            }
            for (at, frame) in place.frames.iter().enumerate() {
                if let Some((function, ..)) = parts(frame) {
                    let chain = Self::among(&mut all, route, &place.frames[..at], function);
                    chain.add(frame, place);
                }
            }
        }
        all
    }

    /// Returns the chain of this function, a new one if there is none.
    fn among<'b>(
        all: &'b mut Vec<Self>,
        route: &'a Route,
        outside: &'a [String],
        function: &'a str,
    ) -> &'b mut Self {
        let mut chains = all.iter();
        let known = chains.position(|one| one.outside == outside && one.function == function);
        let at = known.unwrap_or(all.len());
        if at == all.len() {
            all.push(Self {
                route,
                outside,
                function,
                lines: Vec::new(),
            });
        }
        &mut all[at]
    }

    fn add(&mut self, frame: &'a str, place: &'a Place) {
        match self.lines.iter_mut().find(|line| line.frame == frame) {
            Some(line) => line.places.push(place),
            None => self.lines.push(Line {
                frame,
                places: vec![place],
            }),
        }
    }

    /// Returns the requests in these calls, averaged over time, and those at the line with most.
    fn in_flight(&self) -> (f64, f64) {
        let (mut all, mut most) = (0.0, 0.0_f64);
        for line in &self.lines {
            all += line.in_flight();
            most = most.max(line.in_flight());
        }
        (all, most)
    }

    /// Returns the share of a request's time that is saved if the calls run together: the longest is left.
    fn saved(&self) -> f64 {
        let (all, most) = self.in_flight();
        (all - most) / self.route.in_flight.max(f64::MIN_POSITIVE)
    }

    /// Returns the share of these waits after which the same request was seen in another call of the chain.
    fn followed(&self, requests: &Requests) -> f64 {
        let mut followed = 0.0;
        for line in &self.lines {
            for place in &line.places {
                for next in &requests.sequences {
                    let is_here = next.route == place.route && next.frames == place.frames;
                    if is_here && self.leads_on(line, &next.next) {
                        followed += place.in_flight * next.share;
                    }
                }
            }
        }
        followed / self.in_flight().0.max(f64::MIN_POSITIVE)
    }

    /// Returns whether these frames are at another line of the chain.
    fn leads_on(&self, line: &Line<'_>, frames: &[String]) -> bool {
        if !frames.starts_with(self.outside) {
            return false;
        }
        let Some(at) = frames.get(self.outside.len()) else {
            return false;
        };
        let mut lines = self.lines.iter();
        lines.any(|other| other.frame != line.frame && other.frame == at)
    }

    /// Returns whether most of these waits are for a database.
    fn is_of_database(&self) -> bool {
        let mut of_database = 0.0;
        for line in &self.lines {
            for place in &line.places {
                if place.kind() == Some(WaitKind::Database) {
                    of_database += place.in_flight;
                }
            }
        }
        of_database * 2.0 > self.in_flight().0
    }

    fn finding(&self, evidence: &Evidence) -> Finding {
        let mut lines = Vec::new();
        for line in &self.lines {
            let share = line.in_flight() / self.route.in_flight;
            if let (Some(parts), true) = (parts(line.frame), share >= LISTED_LINE) {
                lines.push((parts.1, parts.2, share));
            }
        }
        lines.sort_by_key(|(_, line, _)| *line);
        let mut shares = Vec::new();
        for (file, line, share) in &lines {
            shares.push(format!("{:.0} % at {file}:{line}", share * 100.0));
        }
        let (first, last) = (lines.first(), lines.last());
        let at = match (first, last) {
            (Some((file, first, _)), Some((_, last, _))) => {
                format!("{} ({file}:{first} to {last})", self.function)
            }
            _ => self.function.to_owned(),
        };
        let mut seen = format!("Of a request's time, {}.", shares.join(", "));
        let mut left = "the longest is left".to_owned();
        if let Some(ms) = self.route.mean_ms(evidence.seconds) {
            let (all, most) = self.in_flight();
            let each = ms / self.route.in_flight;
            seen = format!("{seen} Together they take {}.", figures::of(all * each, ms));
            left = format!("{left}, about {}", figures::duration(most * each));
        }
        let (level, fix) = if self.is_of_database() {
            (
                Level::Wait,
                "If none needs the answers before it, and they need not be one transaction, ask for all in one \
                 statement."
                    .to_owned(),
            )
        } else {
            (
                Level::Fault,
                format!(
                    "If they do not need each other's answers, await them together (`tokio::join!`): {left}."
                ),
            )
        };
        let words = Words {
            headline: format!(
                "{}: {} calls follow each other at {at}.",
                self.route.name,
                lines.len()
            ),
            seen,
            cause: "Each call is awaited before the next one is made.".to_owned(),
            fix,
        };
        let weight = ONE_AFTER_ANOTHER_WEIGHT + self.saved() / 2.0;
        Finding::of(level, "one_after_another", weight, "/debug/await", words)
    }
}

/// Returns whether a request waits there for an answer that does not depend on other requests, and for nothing else at
/// the same time.
fn is_call(place: &Place) -> bool {
    use WaitKind::{Answer, AnswerOrStream, BlockingPool, Body, Database, NewConnection, Task};
    let is_asked = matches!(
        place.kind(),
        Some(Answer | AnswerOrStream | BlockingPool | Body | Database | NewConnection | Task)
    );
    // A transaction's begin and commit have their places in the order.
    let is_transaction = place.wait.is_some_and(|wait| wait.is_transaction());
    is_asked && !is_transaction && !place.is_one_of_several()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Sequence;
    use crate::testing::{both_sides, evidence, place, route};

    const ANSWER: &str = "(waiting for the answer)";
    const ASK: &str = "shop::ask (src/page.rs:20)";

    fn line(number: u32) -> String {
        format!("shop::page (src/page.rs:{number})")
    }

    /// Requests that await these lines, each with the requests at it and the share of its waits that the next line
    /// follows.
    fn awaits(leaf: &str, lines: &[(u32, f64, f64)]) -> Evidence {
        let (mut places, mut sequences) = (Vec::new(), Vec::new());
        for (at, (number, in_flight, share)) in lines.iter().enumerate() {
            let place = place("GET /page", &[&line(*number), ASK, leaf], *in_flight);
            if let Some((next, ..)) = lines.get(at + 1) {
                let mut frames = place.frames.clone();
                frames[0] = line(*next);
                sequences.push(Sequence {
                    route: place.route.clone(),
                    frames: place.frames.clone(),
                    next: frames,
                    share: *share,
                });
            }
            places.push(place);
        }
        let mut evidence = evidence(&[route("GET /page", 1.0, 100)], &places);
        evidence.requests.as_mut().unwrap().sequences = sequences;
        evidence
    }

    #[test]
    fn calls_that_follow_each_other_are_told_with_all_lines_and_what_is_left() {
        let four = [42, 43, 44, 45].map(|number| (number, 0.24, 0.9));
        let found = look(&awaits(ANSWER, &four)).remove(0);
        assert_eq!(
            found.headline,
            "GET /page: 4 calls follow each other at shop::page (src/page.rs:42 to 45)."
        );
        // One request at a time, 100 ms each.
        assert!(found.fix.contains("about 24.0 ms"), "{found:?}");
        assert!(
            found
                .fix
                .starts_with("If they do not need each other's answers")
        );
    }

    #[test]
    fn it_is_told_on_the_right_side_of_each_threshold() {
        both_sides(look, TOGETHER, |saved| {
            awaits(ANSWER, &[(42, 0.5, 0.9), (43, saved, 0.0)])
        });
        both_sides(look, FOLLOWED, |share| {
            awaits(ANSWER, &[(42, 0.4, 2.0 * share), (43, 0.4, 0.0)])
        });
    }

    #[test]
    fn two_sides_of_a_branch_and_calls_at_once_are_none() {
        let branch = awaits(ANSWER, &[(42, 0.45, 0.0), (43, 0.45, 0.0)]);
        assert!(look(&branch).is_empty());
        let mut joined = awaits(ANSWER, &[(42, 0.45, 0.9), (43, 0.45, 0.9)]);
        for place in &mut joined.requests.as_mut().unwrap().places {
            place
                .frames
                .insert(0, "(one of 2 waits at once)".to_owned());
        }
        assert!(look(&joined).is_empty());
    }

    #[test]
    fn statements_may_be_one_transaction() {
        let found = look(&awaits(
            "sqlx_postgres",
            &[(42, 0.45, 0.9), (43, 0.45, 0.9)],
        ))
        .remove(0);
        assert_eq!(found.level, Level::Wait, "{found:?}");
    }
}
