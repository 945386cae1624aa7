//! A request awaits one call after the other, at several lines of one function, where it could await them together.

use ecosystem::{WaitKind, figures};

use super::table;
use crate::evidence::{Frame, Line, Place, Requests, Route};
use crate::facts::Facts;
use crate::finding::{Row, Sighting};
use crate::thresholds::{FOLLOWED, LISTED_LINE, TOGETHER};

/// Calls of a route that follow each other.
pub(crate) struct CallsInTurn {
    route: String,
    /// Lines of one function with the share of a request's time at each, in their order.
    lines: Vec<(Line, f64)>,
    /// Share of a request's time that is saved if the calls run together.
    saved: f64,
    is_of_database: bool,
    times: Option<Times>,
}

/// Times of a request, in milliseconds.
struct Times {
    whole: f64,
    /// All calls together.
    calls: f64,
    /// The longest call.
    longest: f64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Vec<CallsInTurn> {
    let mut found = Vec::new();
    let Some(requests) = facts.requests else {
        return found;
    };
    for route in &requests.routes {
        let chains = Chain::all(requests, route).into_iter();
        let most = chains.max_by(|a, b| a.saved().total_cmp(&b.saved()));
        let Some(chain) = most else { continue };
        if chain.saved() >= TOGETHER && chain.followed(requests) >= FOLLOWED {
            found.push(chain.sighting(facts.evidence.seconds));
        }
    }
    found
}

/// Calls of a route that one function awaits, by line.
struct Chain<'a> {
    route: &'a Route,
    /// Frames that called the function.
    outside: &'a [Frame],
    lines: Vec<Calls<'a>>,
}

/// Calls that are awaited at one line.
struct Calls<'a> {
    line: &'a Line,
    places: Vec<&'a Place>,
}

impl Calls<'_> {
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
                if let Some(line) = frame.line() {
                    let chain = Self::among(&mut all, route, &place.frames[..at], line);
                    chain.add(line, place);
                }
            }
        }
        all
    }

    /// Returns the chain of the function of this line, a new one if there is none.
    fn among<'b>(
        all: &'b mut Vec<Self>,
        route: &'a Route,
        outside: &'a [Frame],
        line: &Line,
    ) -> &'b mut Self {
        let mut chains = all.iter();
        let known = chains
            .position(|one| one.outside == outside && one.lines[0].line.function == line.function);
        let at = known.unwrap_or(all.len());
        if at == all.len() {
            all.push(Self {
                route,
                outside,
                lines: Vec::new(),
            });
        }
        &mut all[at]
    }

    fn add(&mut self, line: &'a Line, place: &'a Place) {
        match self.lines.iter_mut().find(|calls| calls.line == line) {
            Some(calls) => calls.places.push(place),
            None => self.lines.push(Calls {
                line,
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
        for calls in &self.lines {
            for place in &calls.places {
                for next in &requests.sequences {
                    let is_here = next.route == place.route && next.frames == place.frames;
                    if is_here && self.leads_on(calls, &next.next) {
                        followed += place.in_flight * next.share;
                    }
                }
            }
        }
        followed / self.in_flight().0.max(f64::MIN_POSITIVE)
    }

    /// Returns whether these frames are at another line of the chain.
    fn leads_on(&self, calls: &Calls<'_>, frames: &[Frame]) -> bool {
        if !frames.starts_with(self.outside) {
            return false;
        }
        let Some(at) = frames.get(self.outside.len()).and_then(Frame::line) else {
            return false;
        };
        let mut lines = self.lines.iter();
        lines.any(|other| other.line != calls.line && other.line == at)
    }

    /// Returns whether most of these waits are for a database.
    fn is_of_database(&self) -> bool {
        let mut of_database = 0.0;
        for calls in &self.lines {
            for place in &calls.places {
                if place.kind() == Some(WaitKind::Database) {
                    of_database += place.in_flight;
                }
            }
        }
        of_database * 2.0 > self.in_flight().0
    }

    fn sighting(&self, seconds: f64) -> CallsInTurn {
        let mut lines = Vec::new();
        for calls in &self.lines {
            let share = calls.in_flight() / self.route.in_flight;
            if share >= LISTED_LINE {
                lines.push((calls.line.clone(), share));
            }
        }
        lines.sort_by_key(|(line, _)| line.line);
        let (all, most) = self.in_flight();
        let times = self.route.mean_ms(seconds).map(|whole| {
            let each = whole / self.route.in_flight;
            Times {
                whole,
                calls: all * each,
                longest: most * each,
            }
        });
        CallsInTurn {
            route: self.route.name.clone(),
            lines,
            saved: self.saved(),
            is_of_database: self.is_of_database(),
            times,
        }
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

impl Sighting for CallsInTurn {
    fn row(&self) -> &'static Row {
        if self.is_of_database {
            table::STATEMENTS_IN_TURN
        } else {
            table::ONE_AFTER_ANOTHER
        }
    }

    fn share(&self) -> f64 {
        self.saved / 2.0
    }

    fn headline(&self) -> String {
        let at = match (self.lines.first(), self.lines.last()) {
            (Some((first, _)), Some((last, _))) => format!(
                "{} ({}:{} to {})",
                first.function, first.file, first.line, last.line
            ),
            _ => "an unknown place".to_owned(),
        };
        let (route, calls) = (&self.route, self.lines.len());
        format!("{route}: {calls} calls follow each other at {at}.")
    }

    fn seen(&self) -> String {
        let mut shares = Vec::new();
        for (line, share) in &self.lines {
            shares.push(format!(
                "{:.0} % at {}:{}",
                share * 100.0,
                line.file,
                line.line
            ));
        }
        let seen = format!("Of a request's time, {}.", shares.join(", "));
        match &self.times {
            Some(times) => format!(
                "{seen} Together they take {}, and the longest {}.",
                figures::of(times.calls, times.whole),
                figures::duration(times.longest)
            ),
            None => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::evidence::Sequence;
    use crate::finding::{Finding, Level};
    use crate::rules::told;
    use crate::testing::{both_sides, evidence, place, route};

    fn look(evidence: &Evidence) -> Vec<Finding> {
        told(super::check(&Facts::of(evidence)))
    }

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
                frames[0] = crate::testing::frames(&[&line(*next)]).remove(0);
                sequences.push(Sequence {
                    route: place.route.clone(),
                    frames: place.frames.clone(),
                    next: frames,
                    share: *share,
                    ..Sequence::default()
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
        assert!(
            found.seen.ends_with("and the longest 24.0 ms."),
            "{found:?}"
        );
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
            place.frames.insert(0, Frame::Several(2));
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
