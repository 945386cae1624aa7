//! Right answers for a service that nobody described, learned from the base before the load.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use children::{Interrupt, Starting};
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg32;
use statistics::figures;

use crate::bodies::Right;
use crate::load::Target;
use crate::load::ask::{Unanswered, ask};
use crate::service;
use crate::traffic::{Expected, Part, Request, Route, Rule, Traffic};

/// Largest number of a route's values whose answers are learned before the load.
const LEARNT: usize = 64;
/// Largest number of further values of a route whose answers are compared before each round. With the first ones, the
/// three rounds of the shortest comparison have 352, and a change that is wrong for 1 % of the values shows in 97 % of
/// such comparisons.
const LEARNT_IN_A_ROUND: usize = 96;
/// Approximate time limit for learning one route. The first pass stops after half of it; the second repeats the same
/// requests.
const LONGEST: Duration = Duration::from_secs(10);
/// Time after which no further value of a round is asked for at the base; the other two servers get the same requests.
const LONGEST_IN_A_ROUND: Duration = Duration::from_secs(2);
/// Number of values that may be missing, one after the other, before a route is rejected for its status.
const MISSING: usize = 8;
/// Largest number of requests that are sent at once to learn their answers.
const AT_ONCE: usize = 8;
/// Memory for the bodies that answers under load are compared with, in bytes.
const KEPT: usize = 64 << 20;
/// Shortest time between the two passes, so that a clock in a body shows another second.
const APART: Duration = Duration::from_millis(1100);
/// Number of times that a request is repeated while its answer has a status that is allowed beside the right one, with
/// [`PAUSE`] before each.
const ASKED_AGAIN: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// Largest body that is kept for comparison, in bytes.
const LONGEST_BODY: usize = 1 << 20;
/// Number of bytes of a body that a message shows.
const SHOWN: usize = 80;
/// Largest number of JSON pointers that a message lists. With more there is no advice.
const POINTERS: usize = 8;
/// Number of answers per route that a command judges: each one starts a process.
const JUDGED: usize = 8;
/// Longest time that one judgment may take.
const TO_JUDGE: Duration = Duration::from_secs(10);

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

/// Values of a route in a random order, in which their answers are learned.
#[derive(Debug, Clone)]
struct Draw {
    order: Vec<usize>,
    taken: usize,
}

impl Draw {
    /// Draws the order of `values` values of the route with this number.
    fn of(values: usize, seed: u64, route: usize) -> Self {
        let mut order: Vec<usize> = (0..values).collect();
        order.shuffle(&mut Pcg32::new(seed, DRAW + route as u64));
        Self { order, taken: 0 }
    }

    /// Takes up to `most` of the values that are left.
    fn take(&mut self, most: usize) -> Vec<usize> {
        let left = &self.order[self.taken..];
        let taken = left[..most.min(left.len())].to_vec();
        self.taken += taken.len();
        taken
    }
}

/// Random streams that draw the values whose answers are learned, one for each route. Those of the load lie elsewhere.
const DRAW: u64 = 1 << 42;

/// A server to ask, and how long to wait for its answers.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Name of the server in messages.
    pub who: &'a str,
    /// Address, protocol and headers for the requests.
    pub target: &'a Target,
    /// Longest time to wait for an answer.
    pub time_out: Duration,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Asked<'_> {
    fn ask(&self, request: &Request) -> Result<Expected, AnswerError> {
        if self.interrupt.is_set() {
            return Err(AnswerError::Interrupted);
        }
        let reason = match ask(self.target, request, self.time_out) {
            Ok(answer) => return Ok(Expected::of(answer.status, Some(answer.body))),
            Err(reason) => reason,
        };
        let got = match reason {
            Unanswered::Grpc(_) => "is answered with",
            Unanswered::TimeOut | Unanswered::Failed(_) => "got no answer:",
        };
        let (who, request) = (self.who, name(request));
        let advice = if self.target.speaks_tls_unasked() {
            "; HTTPS is spoken there: write https://, with --cacert or --insecure"
        } else {
            ""
        };
        Err(AnswerError::Other(format!(
            "{who}: {request} {got} {reason}{advice}"
        )))
    }

    /// Asks until the status is not merely an allowed one: the refusal of an overloaded service teaches nothing.
    /// Returns the last answer if no other comes.
    fn ask_in_earnest(&self, request: &Request) -> Result<Expected, AnswerError> {
        let mut answer = self.ask(request)?;
        for _ in 0..ASKED_AGAIN {
            if !request.expected.allows(answer.status) {
                break;
            }
            std::thread::sleep(PAUSE);
            answer = self.ask(request)?;
        }
        Ok(answer)
    }

    /// Sends all `requests`, `at_once` of them at the same time, and returns the answers by the requests' places. Those
    /// that have not begun at `until` are left out.
    fn ask_all(
        &self,
        requests: &[Request],
        at_once: usize,
        until: Option<Instant>,
    ) -> Result<Vec<(usize, Expected)>, AnswerError> {
        let next = AtomicUsize::new(0);
        let ask_some = || {
            let mut answers = Vec::new();
            while until.is_none_or(|until| Instant::now() < until) {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(place) else {
                    break;
                };
                answers.push((place, self.ask_in_earnest(request)?));
            }
            Ok(answers)
        };
        let mut answers: Vec<(usize, Expected)> = Vec::new();
        std::thread::scope(|scope| {
            let count = at_once.min(requests.len());
            let asking: Vec<_> = (0..count).map(|_| scope.spawn(ask_some)).collect();
            for one in asking {
                let Ok(some) = one.join() else {
                    let panicked = "a request panicked; see the message above".to_owned();
                    return Err(AnswerError::Other(panicked));
                };
                answers.extend(some?);
            }
            Ok(())
        })?;
        answers.sort_by_key(|(place, _)| *place);
        Ok(answers)
    }
}

/// Learns the answers to `traffic`, including its bystander's, and makes them the expected ones: always the status, and
/// the parts of the body that are to be compared. Asks for every answer twice, because parts that change by themselves
/// cannot be compared. The seed of the load draws the values whose bodies are learned. With `how.status` it checks one
/// request per route and learns no body.
///
/// # Errors
///
/// Returns an error if there is no answer, if its status is unexpected, or if a part that is to be compared changes.
pub fn learn(server: &Asked<'_>, traffic: &mut Traffic, how: &How) -> Result<Learnt, AnswerError> {
    let mut learnt = Learnt {
        routes: Vec::new(),
        general: Vec::new(),
        advice: Vec::new(),
        who: server.who.trim_start_matches("the ").to_owned(),
        judge: how.judge.clone(),
        at_once: AT_ONCE.min(traffic.users.max(1) as usize),
        kept: 0,
    };
    let allowed = &traffic.routes[0].requests[0].expected.allowed;
    if !allowed.is_empty() {
        let allowed: Vec<String> = allowed.iter().map(u16::to_string).collect();
        learnt.general.push(format!(
            "answers with status {} count as right, whatever their body.",
            allowed.join(" or ")
        ));
    }
    let routes = traffic.routes.len() + usize::from(traffic.bystander.is_some());
    if let Some(expected) = how.status {
        for index in 0..routes {
            let route = route_of(traffic, index);
            let known = given(server, route, expected)?;
            learnt.routes.push(known);
        }
        return Ok(learnt);
    }
    let began = Instant::now();
    let mut firsts = Vec::new();
    for index in 0..routes {
        let seed = traffic.seed;
        let route = route_of(traffic, index);
        let mut draw = Draw::of(route.requests.len(), seed, index);
        let answers = first_time(server, route, &mut draw, learnt.at_once)?;
        firsts.push((draw, answers));
    }
    std::thread::sleep(APART.saturating_sub(began.elapsed()));
    for (index, (draw, first)) in firsts.into_iter().enumerate() {
        let route = route_of(traffic, index);
        second_time(server, route, draw, &first, how, &mut learnt)?;
    }
    Ok(learnt)
}

/// Returns a route of the load, or its bystander's after these.
fn route_of(traffic: &mut Traffic, index: usize) -> &mut Route {
    match &mut traffic.bystander {
        Some(paced) if index == traffic.routes.len() => &mut paced.route,
        _ => &mut Arc::make_mut(&mut traffic.routes)[index],
    }
}

/// Expects the status that was given, after one request that has it.
fn given(server: &Asked<'_>, route: &mut Route, expected: u16) -> Result<LearntRoute, AnswerError> {
    for request in &mut route.requests {
        expect(request, expected, None);
    }
    let first = &route.requests[0];
    let answer = server.ask(first)?;
    if !first.expected.has(answer.status) {
        return Err(AnswerError::Status(format!(
            "{}: {} answers with status {}, and {expected} is expected ({:?})",
            server.who,
            name(first),
            answer.status,
            body(&answer)
        )));
    }
    Ok(LearntRoute {
        name: route.name.clone(),
        values: route.requests.len(),
        draw: Draw {
            order: Vec::new(),
            taken: 0,
        },
        rule: Rule::default(),
        compared: Compared::Given,
        is_usual: true,
        known: vec![first.clone()],
        count: 1,
        advice: None,
    })
}

/// Requests of a route by their index, with the answer that each got.
type Answers = Vec<(usize, Expected)>;

/// Asks for the first answers of a route, by values that are drawn. A missing value is part of the load if another has a
/// good answer; if the first ones are all missing, the route is rejected.
fn first_time(
    server: &Asked<'_>,
    route: &Route,
    draw: &mut Draw,
    at_once: usize,
) -> Result<Answers, AnswerError> {
    let until = Instant::now() + LONGEST / 2;
    let mut answers = Answers::new();
    let (mut rejected, mut is_good) = (None, false);
    for _ in 0..MISSING {
        let Some(index) = draw.take(1).pop() else {
            break;
        };
        let request = &route.requests[index];
        let answer = server.ask_in_earnest(request)?;
        let is_allowed = request.expected.allows(answer.status);
        is_good = answer.status < 400 && !is_allowed;
        if !is_good && rejected.is_none() {
            rejected = Some((request, answer.clone()));
        }
        if !is_allowed {
            answers.push((index, answer));
        }
        if is_good {
            break;
        }
    }
    if let Some((request, answer)) = rejected
        && !is_good
    {
        let status = answer.status;
        let mut advice = format!(
            "correct the request, or say --expect-status {status} if that is what is to be measured"
        );
        if status == 401
            && let Some(scheme) = server.target.token_scheme()
        {
            advice = format!(
                "the login's token was sent as `Authorization: {scheme} …`; if the service wants another scheme, name it \
                 by --login-scheme"
            );
        }
        return Err(AnswerError::Status(format!(
            "{}: {} answers with status {status} ({:?}); {advice}",
            server.who,
            name(request),
            body(&answer)
        )));
    }
    let rest = draw.take(LEARNT - answers.len().min(LEARNT));
    answers.extend(asked(server, route, &rest, at_once, Some(until))?);
    Ok(answers)
}

/// Asks for the answers of these values, but for those with an allowed status, which teach nothing.
fn asked(
    server: &Asked<'_>,
    route: &Route,
    indices: &[usize],
    at_once: usize,
    until: Option<Instant>,
) -> Result<Answers, AnswerError> {
    let of_index = |index: &usize| route.requests[*index].clone();
    let requests: Vec<Request> = indices.iter().map(of_index).collect();
    let mut answers = Answers::new();
    for (place, answer) in server.ask_all(&requests, at_once, until)? {
        if !requests[place].expected.allows(answer.status) {
            answers.push((indices[place], answer));
        }
    }
    Ok(answers)
}

/// Asks for all answers again, and returns how they changed.
fn changes(
    server: &Asked<'_>,
    route: &Route,
    first: &Answers,
    how: &How,
    rule: &Rule,
    at_once: usize,
) -> Result<Changes, AnswerError> {
    let of_index = |(index, _): &(usize, Expected)| route.requests[*index].clone();
    let requests: Vec<Request> = first.iter().map(of_index).collect();
    let mut changes = Changes::default();
    for (place, again) in server.ask_all(&requests, at_once, None)? {
        let answer = &first[place].1;
        match &how.judge {
            Some(judge) if again.status == answer.status => {
                if place < JUDGED && !is_judged_same(judge, answer, &again, server.interrupt)? {
                    return Err(AnswerError::Status(format!(
                        "{}: --judge calls two answers to {} different: {:?} and {:?}",
                        server.who,
                        name(&requests[place]),
                        body(answer),
                        body(&again)
                    )));
                }
            }
            _ => changes.note(answer, &again, rule),
        }
    }
    if changes.count > 0 && how.rule.is_some() {
        let advice = match changes.advice() {
            Some(advice) => advice,
            None if changes.has_other_status => {
                "allow its other status, by --allow-status".to_owned()
            }
            None => "only --compare status is left".to_owned(),
        };
        return Err(AnswerError::Status(format!(
            "{}: the compared part of {} changes from one answer to the next: {advice}",
            server.who, route.name
        )));
    }
    Ok(changes)
}

fn second_time(
    server: &Asked<'_>,
    route: &mut Route,
    draw: Draw,
    first: &Answers,
    how: &How,
    learnt: &mut Learnt,
) -> Result<(), AnswerError> {
    let mut rule = how.rule.clone().unwrap_or_default();
    if how.judge.is_some() {
        rule.part = Part::Status;
    }
    let changes = changes(server, route, first, how, &rule, learnt.at_once)?;
    let good = first.iter().find(|(_, answer)| answer.status < 400);
    let usual = good.unwrap_or(&first[0]).1.status;
    let is_usual = first.iter().all(|(_, answer)| answer.status == usual);
    let is_json = Expected {
        rule: rule.clone(),
        ..first[0].1.clone()
    }
    .is_json();
    let compared = match (rule.part, is_json) {
        _ if changes.count > 0 => Compared::Changing,
        _ if how.judge.is_some() => Compared::Judged,
        (_, true) => Compared::Json,
        (Part::Body, _) => Compared::Bodies,
        (Part::Size, _) => Compared::Sizes,
        // A body that is no JSON, where JSON was asked for, is compared by its status.
        (Part::Status, _) => Compared::Status,
    };
    let mut known = LearntRoute {
        name: route.name.clone(),
        values: route.requests.len(),
        draw,
        rule,
        compared,
        is_usual,
        known: Vec::new(),
        count: 0,
        advice: None,
    };
    for (index, answer) in first {
        known.keep(&mut route.requests[*index], answer, &mut learnt.kept);
    }
    if is_usual {
        for (index, request) in route.requests.iter_mut().enumerate() {
            if !first.iter().any(|(known, _)| *known == index) {
                expect(request, usual, None);
            }
        }
    } else {
        // The status of a value that was not requested is unknown.
        route.requests.clone_from(&known.known);
    }
    if compared == Compared::Changing
        && let Some(advice) = changes.advice()
    {
        let advice = format!("To compare more, {advice}.");
        learnt.advice.push(format!("{} {advice}", known.note()));
        known.advice = Some(advice);
    }
    if let Some((_, answer)) = first
        .iter()
        .find(|(_, one)| (300..400).contains(&one.status))
    {
        learnt.general.push(format!(
            "{}: status {} is a redirect, which counts as right and is not followed.",
            route.name, answer.status
        ));
    }
    learnt.routes.push(known);
    Ok(())
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
            let first = asked(base, route, &indices, self.at_once, Some(until))?;
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

/// Two answers to one request that differ: where, and what they are.
struct Difference {
    place: String,
    expected: String,
    received: String,
}

/// Returns how `answer` differs from the expected one; `None` if it is right.
fn difference(
    request: &Request,
    answer: &Expected,
    judge: Option<&str>,
    server: &Asked<'_>,
) -> Result<Option<Difference>, AnswerError> {
    let expected = &request.expected;
    if expected.allows(answer.status) {
        return Ok(None);
    }
    if answer.status != expected.status {
        return Ok(Some(Difference {
            place: String::new(),
            expected: format!("status {}", expected.status),
            received: format!("status {}", answer.status),
        }));
    }
    let Some(right) = Right::of(expected) else {
        return Ok(None);
    };
    let received = answer.body.as_deref().unwrap_or_default();
    let is_right = match judge {
        Some(judge) => is_judged_same(judge, expected, answer, server.interrupt)?,
        None => right.is(received),
    };
    if is_right {
        return Ok(None);
    }
    let mut place = String::new();
    if expected.is_json()
        && let Some(pointers) = right.differing(received)
    {
        let pointers: Vec<String> = pointers.into_iter().take(POINTERS).collect();
        place = format!(" at {}", pointers.join(", "));
    }
    Ok(Some(Difference {
        place,
        expected: format!("{:?}", body(expected)),
        received: format!("{:?}", body(answer)),
    }))
}

fn differ(difference: &Difference, request: &Request, base: &str, change: &str) -> AnswerError {
    let Difference {
        place,
        expected,
        received,
    } = difference;
    AnswerError::Other(format!(
        "answers differ{place}: {} is {expected} of the {base}, and {received} of the {change}",
        name(request),
    ))
}

/// Changes between two answers to the same requests of a route.
#[derive(Default)]
struct Changes {
    /// Number of answers that changed.
    count: usize,
    /// Set if pointers cannot describe a change: a status differs, or a body is not JSON.
    is_no_json: bool,
    pointers: BTreeSet<String>,
    has_other_size: bool,
    has_other_status: bool,
}

impl Changes {
    fn note(&mut self, one: &Expected, again: &Expected, rule: &Rule) {
        let expected = Expected {
            rule: rule.clone(),
            ..one.clone()
        };
        let body = again.body.as_deref().unwrap_or_default();
        self.has_other_status |= one.status != again.status;
        let right = if one.status == again.status {
            Right::of(&expected)
        } else {
            None
        };
        let mut pointers = None;
        if let Some(right) = right {
            if right.is(body) {
                return;
            }
            pointers = right.differing(body);
        }
        self.count += 1;
        self.has_other_size |= one.body.as_deref().unwrap_or_default().len() != body.len();
        match pointers {
            Some(pointers) => self.pointers.extend(pointers),
            None => self.is_no_json = true,
        }
    }

    /// Returns the option that compares the most, if that is more than the status.
    fn advice(&self) -> Option<String> {
        let has_pointers =
            !self.is_no_json && !self.has_other_status && !self.pointers.contains("");
        if has_pointers && self.pointers.is_empty() {
            return Some("add --compare json, for the order of its keys changes".to_owned());
        }
        if has_pointers && self.pointers.len() <= POINTERS {
            let mut advice = "add".to_owned();
            for pointer in &self.pointers {
                let _ = write!(advice, " --ignore-json '{pointer}'");
            }
            return Some(advice);
        }
        if self.has_other_size || self.has_other_status {
            return None;
        }
        Some("add --compare size".to_owned())
    }
}

/// Returns whether the command `judge` calls the two answers the same.
fn is_judged_same(
    judge: &str,
    expected: &Expected,
    received: &Expected,
    interrupt: &Interrupt,
) -> Result<bool, AnswerError> {
    let failed =
        |why: &dyn std::fmt::Display| AnswerError::Status(format!("--judge {judge:?}: {why}"));
    let folder = tempfile::Builder::new().prefix("workshop-").tempdir();
    let folder = folder.map_err(|error| failed(&error))?;
    let mut command = service::shell(judge);
    for (variable, answer) in [("EXPECTED", expected), ("RECEIVED", received)] {
        let file = folder.path().join(variable.to_lowercase());
        let body = answer.body.as_deref().unwrap_or_default();
        std::fs::write(&file, body).map_err(|error| failed(&error))?;
        command.env(variable, file);
    }
    let output = match Starting::of(&command).output(interrupt, TO_JUDGE, 4096) {
        Ok(Some(output)) => output,
        Ok(None) => return Err(failed(&"it takes more than 10 s")),
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
            return Err(AnswerError::Interrupted);
        }
        Err(error) => return Err(failed(&error)),
    };
    match output.status.code() {
        // Exit codes of a shell whose command does not exist or cannot be executed.
        Some(126 | 127) => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
        code => Ok(code == Some(0)),
    }
}

/// Sets the expected status and body. Statuses that are allowed beside it stay.
fn expect(request: &mut Request, status: u16, body: Option<Vec<u8>>) {
    request.expected.status = status;
    request.expected.body = body;
}

fn name(request: &Request) -> String {
    format!("{} {}", request.method, request.path)
}

fn body(answer: &Expected) -> String {
    let bytes = answer.body.as_deref().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
    if bytes.len() > SHOWN {
        text + "…"
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of a thousand comparisons of three rounds that ask for a value of the first `wrong`.
    fn found(values: usize, wrong: usize) -> f64 {
        let mut found = 0;
        for seed in 0..1000 {
            let mut draw = Draw::of(values, seed, 0);
            let mut asked = draw.take(LEARNT);
            for _ in 0..statistics::FIRST_LOOK {
                asked.extend(draw.take(LEARNT_IN_A_ROUND));
            }
            found += u32::from(asked.iter().any(|index| *index < wrong));
        }
        f64::from(found) / 1000.0
    }

    #[test]
    fn a_change_that_is_wrong_for_one_value_in_a_hundred_is_found_in_19_of_20_runs() {
        for values in [300, 500, 5000, 100_000] {
            let share = found(values, values / 100);
            println!("{values} values: found in {share} of the shortest runs");
            assert!(share >= 0.95, "{values}: {share}");
        }
        assert!(found(5000, 0) < 1e-9);
    }

    #[test]
    fn each_run_draws_other_values_and_each_value_once() {
        let drawn = |seed, route| {
            let mut draw = Draw::of(500, seed, route);
            [draw.take(64), draw.take(96)].concat()
        };
        let first = drawn(1, 0);
        assert_eq!(first, drawn(1, 0));
        assert_ne!(first, drawn(2, 0));
        assert_ne!(first, drawn(1, 1));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 160);
        assert_eq!(Draw::of(3, 1, 0).take(64).len(), 3);
    }
}
