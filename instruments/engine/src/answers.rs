//! Right answers for a service that nobody described, learned from the base before the load.

mod asked;
mod difference;
mod draw;
mod learning;

use std::sync::Arc;
use std::time::{Duration, Instant};

use statistics::figures;

pub use self::asked::Asked;
use self::difference::{differ, difference};
use self::draw::{Draw, LEARNT_IN_A_ROUND};
pub use self::learning::learn;
use crate::traffic::{Expected, Request, Route, Rule, Traffic};

/// Time after which no further value of a round is asked for at the base; the other two servers get the same requests.
const LONGEST_IN_A_ROUND: Duration = Duration::from_secs(2);
/// Memory for the bodies that answers under load are compared with, in bytes.
const KEPT: usize = 64 << 20;
/// Shortest time between the two passes, so that a clock in a body shows another second.
const APART: Duration = Duration::from_millis(1100);
/// Largest body that is kept for comparison, in bytes.
const LONGEST_BODY: usize = 1 << 20;
/// Number of answers per route that a command judges: each one starts a process.
const JUDGED: usize = 8;

/// Conditions that make an answer right.
#[derive(Debug, Clone, Default)]
pub struct How {
    /// Status that every answer must have; bodies are then not compared.
    pub status: Option<u16>,
    /// Rule for comparing bodies. Without it, bodies that are the same each time are compared, and others are not.
    pub rule: Option<Rule>,
    /// A command that judges bodies instead, apart from the load. The files are in `EXPECTED` and
    /// `RECEIVED`, and it ends with 0 if they are the same.
    pub judge: Option<String>,
}

/// Reason why answers cannot be learned, or why the two servers cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// An unexpected status, a body that changes although it is to be compared, or a failing `--judge`.
    #[error("{0}")]
    Status(String),
    /// No answer at all, or an answer of the change that differs from the base's.
    #[error("{0}")]
    Other(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Answers that were learned, and what is compared.
#[derive(Debug, Clone)]
pub struct Learnt {
    /// Routes with the known answers to their requests; the bystander's last.
    routes: Vec<LearntRoute>,
    /// Notes that concern all routes.
    general: Vec<String>,
    /// Notes that are printed before the load, because more could be compared.
    pub advice: Vec<String>,
    /// Name of the server that gave the answers.
    who: String,
    judge: Option<String>,
    /// Number of requests that are sent at once.
    at_once: usize,
    /// Size of all bodies that are kept, in bytes.
    kept: usize,
}

/// What is known of the answers of one route.
#[derive(Debug, Clone)]
struct LearntRoute {
    name: String,
    /// Number of its values.
    values: usize,
    draw: Draw,
    /// Rule for comparing its bodies.
    rule: Rule,
    compared: Compared,
    /// Set if all values had the same status. If not, only values whose answer is known are sent.
    is_usual: bool,
    /// Requests whose answer is known.
    known: Vec<Request>,
    /// Number of values whose answers were compared, among them those whose body was not kept.
    count: usize,
    /// Sentence that follows, if more could be compared.
    advice: Option<String>,
}

/// Compared part of a route's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// The status, which was given.
    Given,
    /// The status alone, because bodies change from one answer to the next.
    Changing,
    /// The status alone, as the options say.
    Status,
    /// Bodies, by a command.
    Judged,
    /// Sizes of bodies.
    Sizes,
    /// Bodies as JSON.
    Json,
    /// Bodies byte by byte.
    Bodies,
}

impl Compared {
    fn has_bodies(self) -> bool {
        matches!(self, Self::Judged | Self::Sizes | Self::Json | Self::Bodies)
    }
}

impl LearntRoute {
    /// Makes `answer` the expected one of `request`. Its body counts only where bodies are compared, and as long as there
    /// is memory for it.
    fn keep(&mut self, request: &mut Request, answer: &Expected, kept: &mut usize) {
        let is_compared = match self.compared {
            Compared::Judged => self.count < JUDGED,
            compared => compared.has_bodies(),
        };
        let mut body = None;
        if let Some(bytes) = &answer.body
            && is_compared
            && bytes.len() <= LONGEST_BODY
            && *kept + bytes.len() <= KEPT
        {
            *kept += bytes.len();
            body = Some(bytes.clone());
        }
        expect(request, answer.status, body);
        request.expected.rule = self.rule.clone();
        self.known.push(request.clone());
        self.count += 1;
    }

    /// Returns a sentence that says what is compared.
    fn note(&self) -> String {
        let Self { name, values, .. } = self;
        let (body, bodies) = match self.compared {
            Compared::Given => return String::new(),
            Compared::Changing => {
                return format!(
                    "{name}: its body changes from one answer to the next, so the status alone is compared."
                );
            }
            Compared::Status => return format!("{name}: the status alone is compared."),
            Compared::Judged => {
                return format!(
                    "{name}: statuses are compared, and up to {JUDGED} bodies by --judge, before and after loads."
                );
            }
            Compared::Sizes => ("size", "the sizes"),
            Compared::Json => ("JSON", "the JSON"),
            Compared::Bodies => ("body", "the bodies"),
        };
        if self.count >= *values {
            return format!("{name}: status and {body} are compared.");
        }
        let rest = if self.is_usual {
            "of the others the status"
        } else {
            "the others are not sent, for statuses differ"
        };
        let found = 1.0 - 0.99_f64.powf(self.count as f64);
        format!(
            "{name}: {bodies} of {} of {} are compared, drawn by the seed, {rest}. If 1 % of the values were wrong, {} of \
             such runs would find it.",
            figures::count(self.count as f64),
            figures::things(*values as u64, "value"),
            figures::percent(found),
        )
    }
}

impl Learnt {
    /// Returns sentences that say what is compared so far.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.general.clone();
        for route in &self.routes {
            let note = route.note();
            match &route.advice {
                Some(advice) => notes.push(format!("{note} {advice}")),
                None if note.is_empty() => {}
                None => notes.push(note),
            }
        }
        notes
    }

    /// Sends the change the same requests and compares its answers with the base's.
    ///
    /// # Errors
    ///
    /// Returns an error if the change does not answer, or answers differently.
    pub fn compare(&self, change: &Asked<'_>) -> Result<(), AnswerError> {
        let (who, judge) = (&*self.who, self.judge.as_deref());
        for route in &self.routes {
            for (place, answer) in change.ask_all(&route.known, self.at_once, None)? {
                if let Some(difference) = difference(&route.known[place], &answer, judge, change)? {
                    return Err(differ(&difference, &route.known[place], who, change.who));
                }
            }
        }
        Ok(())
    }

    /// Compares the answers of three fresh servers, base, change and base again, to further values, and makes them the
    /// expected ones of `traffic`. Leaves out a value to which the two of the base answer differently, because that
    /// answer changes by itself.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them does not answer, or if the change answers differently.
    pub fn compare_more(
        &mut self,
        [base, change, again]: [&Asked<'_>; 3],
        traffic: &mut Traffic,
    ) -> Result<(), AnswerError> {
        let began = Instant::now();
        let routes = self.routes.len();
        for (index, known) in self.routes.iter_mut().enumerate() {
            let is_open = known.is_usual && known.compared.has_bodies();
            if !is_open || known.compared == Compared::Judged {
                continue;
            }
            let route = route_of(traffic, index);
            let until = began + LONGEST_IN_A_ROUND.mul_f64((index + 1) as f64 / routes as f64);
            let indices = known.draw.take(LEARNT_IN_A_ROUND);
            let first = learning::asked(base, route, &indices, self.at_once, Some(until))?;
            let mut requests = Vec::new();
            for (index, answer) in &first {
                let mut request = route.requests[*index].clone();
                request.expected.rule = known.rule.clone();
                expect(&mut request, answer.status, answer.body.clone());
                requests.push(request);
            }
            let mut is_changing = vec![false; requests.len()];
            for (place, answer) in again.ask_all(&requests, self.at_once, None)? {
                is_changing[place] = difference(&requests[place], &answer, None, again)?.is_some();
            }
            for (place, answer) in change.ask_all(&requests, self.at_once, None)? {
                if is_changing[place] {
                    continue;
                }
                let request = &requests[place];
                if let Some(difference) = difference(request, &answer, None, change)? {
                    std::thread::sleep(APART);
                    let once_more = base.ask_in_earnest(request)?;
                    is_changing[place] =
                        self::difference(request, &once_more, None, base)?.is_some();
                    if !is_changing[place] {
                        return Err(differ(&difference, request, &self.who, change.who));
                    }
                }
            }
            for (place, (index, answer)) in first.iter().enumerate() {
                if !is_changing[place] {
                    known.keep(&mut route.requests[*index], answer, &mut self.kept);
                }
            }
        }
        Ok(())
    }
}

/// Returns a route of the load, or its bystander's after these.
fn route_of(traffic: &mut Traffic, index: usize) -> &mut Route {
    match &mut traffic.bystander {
        Some(paced) if index == traffic.routes.len() => &mut paced.route,
        _ => &mut Arc::make_mut(&mut traffic.routes)[index],
    }
}

/// Sets the expected status and body. Statuses that are allowed beside it stay.
fn expect(request: &mut Request, status: u16, body: Option<Vec<u8>>) {
    request.expected.status = status;
    request.expected.body = body;
}
