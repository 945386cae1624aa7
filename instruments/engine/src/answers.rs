//! Right answers for a service that nobody described, learned from the base before the load.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use children::{Interrupt, Starting};
use statistics::figures;

use crate::bodies::Right;
use crate::load::Target;
use crate::load::ask::{Unanswered, ask};
use crate::service;
use crate::traffic::{Expected, Part, Request, Route, Rule, Traffic};

/// Largest number of a route's values whose answers are learned, spread evenly over all. For other values only the
/// status is expected.
const LEARNT: usize = 64;
/// Approximate time limit for learning one route. The first pass stops after half of it; the second repeats the same
/// requests.
const LONGEST: Duration = Duration::from_secs(10);
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

/// Answers that were learned, with notes on what is compared.
#[derive(Debug, Clone)]
pub struct Learnt {
    /// Routes with the expected answers to their requests; the bystander's last.
    routes: Vec<Route>,
    /// Sentences that say what is compared.
    pub notes: Vec<String>,
    /// Notes that are printed before the load, because more could be compared.
    pub advice: Vec<String>,
    /// Name of the server that gave the answers.
    who: String,
    judge: Option<String>,
    /// Requests whose answer is known, of all routes.
    known: Vec<Request>,
}

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
        Err(AnswerError::Other(format!(
            "{who}: {request} {got} {reason}"
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
}

/// Learns the answers to `traffic`, including its bystander's, and makes them the expected ones: always the status, and the parts of the body that are to
/// be compared. Asks for every answer twice, because parts that change by themselves cannot be compared. With
/// `how.status` it checks one request per route and learns no body.
///
/// # Errors
///
/// Returns an error if there is no answer, if its status is unexpected, or if a part that is to be compared changes.
pub fn learn(server: &Asked<'_>, traffic: &mut Traffic, how: &How) -> Result<Learnt, AnswerError> {
    let learnt = learnt(server, traffic, how)?;
    let own = traffic.routes.len();
    traffic.routes = learnt.routes[..own].to_vec().into();
    if let (Some(paced), Some(route)) = (&mut traffic.bystander, learnt.routes.get(own)) {
        paced.route = route.clone();
    }
    Ok(learnt)
}

fn learnt(server: &Asked<'_>, traffic: &Traffic, how: &How) -> Result<Learnt, AnswerError> {
    let bystander = traffic.bystander.iter().map(|paced| &paced.route);
    let routes: Vec<&Route> = traffic.routes.iter().chain(bystander).collect();
    let mut learnt = Learnt {
        routes: Vec::new(),
        notes: Vec::new(),
        advice: Vec::new(),
        who: server.who.trim_start_matches("the ").to_owned(),
        judge: how.judge.clone(),
        known: Vec::new(),
    };
    let allowed = &traffic.routes[0].requests[0].expected.allowed;
    if !allowed.is_empty() {
        let allowed: Vec<String> = allowed.iter().map(u16::to_string).collect();
        learnt.notes.push(format!(
            "answers with status {} count as right, whatever their body.",
            allowed.join(" or ")
        ));
    }
    if let Some(expected) = how.status {
        for route in routes {
            let mut route = Route::clone(route);
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
            learnt.known.push(first.clone());
            learnt.routes.push(route);
        }
        return Ok(learnt);
    }
    let began = Instant::now();
    let mut firsts = Vec::new();
    for route in &routes {
        firsts.push(first_time(server, route)?);
    }
    std::thread::sleep(APART.saturating_sub(began.elapsed()));
    for (route, first) in routes.into_iter().zip(&firsts) {
        second_time(server, route, first, how, &mut learnt)?;
    }
    Ok(learnt)
}

/// Requests of a route by their index, with the answer that each got.
type Answers = Vec<(usize, Expected)>;

fn first_time(server: &Asked<'_>, route: &Route) -> Result<Answers, AnswerError> {
    let count = route.requests.len();
    let began = Instant::now();
    let mut answers = Answers::new();
    for sample in 0..count.min(LEARNT) {
        let index = sample * count / count.min(LEARNT);
        let request = &route.requests[index];
        let answer = server.ask_in_earnest(request)?;
        // A missing value is part of the load if a good answer came before it. Otherwise the route is rejected.
        let is_allowed = request.expected.allows(answer.status);
        if (answer.status >= 400 || is_allowed) && answers.is_empty() {
            let status = answer.status;
            return Err(AnswerError::Status(format!(
                "{}: {} answers with status {status} ({:?}); correct the request, or say \
                 --expect-status {status} if that is what is to be measured",
                server.who,
                name(request),
                body(&answer)
            )));
        }
        if !is_allowed {
            answers.push((index, answer));
        }
        if began.elapsed() > LONGEST / 2 {
            break;
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
) -> Result<Changes, AnswerError> {
    let mut changes = Changes::default();
    for (number, (index, answer)) in first.iter().enumerate() {
        let again = server.ask_in_earnest(&route.requests[*index])?;
        match &how.judge {
            Some(judge) if again.status == answer.status => {
                if number < JUDGED && !is_judged_same(judge, answer, &again, server.interrupt)? {
                    return Err(AnswerError::Status(format!(
                        "{}: --judge calls two answers to {} different: {:?} and {:?}",
                        server.who,
                        name(&route.requests[*index]),
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
    route: &Route,
    first: &Answers,
    how: &How,
    learnt: &mut Learnt,
) -> Result<(), AnswerError> {
    let mut route = route.clone();
    let mut rule = how.rule.clone().unwrap_or_default();
    if how.judge.is_some() {
        rule.part = Part::Status;
    }
    let changes = changes(server, &route, first, how, &rule)?;
    let is_same = changes.count == 0;
    let usual = first[0].1.status;
    let is_usual = first.iter().all(|(_, answer)| answer.status == usual);
    let mut known: Vec<Request> = Vec::new();
    for (number, (index, answer)) in first.iter().enumerate() {
        let request = &mut route.requests[*index];
        let is_compared = is_same
            && match &how.judge {
                Some(_) => number < JUDGED,
                None => rule.part != Part::Status || rule.json.is_some(),
            };
        let body = match &answer.body {
            Some(body) if is_compared && body.len() <= LONGEST_BODY => Some(body.clone()),
            _ => None,
        };
        expect(request, answer.status, body);
        request.expected.rule = rule.clone();
        known.push(request.clone());
    }
    let (all, some) = (route.requests.len(), known.len());
    if is_usual {
        for (index, request) in route.requests.iter_mut().enumerate() {
            if !first.iter().any(|(known, _)| *known == index) {
                expect(request, usual, None);
            }
        }
    } else {
        // The status of a value that was not requested is unknown.
        route.requests.clone_from(&known);
    }
    let is_json = known[0].expected.is_json();
    let (body, bodies) = match (rule.part, is_json) {
        (_, true) => ("JSON", "the JSON"),
        (Part::Size, _) => ("size", "the sizes"),
        _ => ("body", "the bodies"),
    };
    learnt.notes.push(if !is_same {
        let mut note = format!(
            "{}: its body changes from one answer to the next, so the status alone is compared.",
            route.name
        );
        if let Some(advice) = changes.advice() {
            note = format!("{note} To compare more, {advice}.");
            learnt.advice.push(note.clone());
        }
        note
    } else if how.judge.is_some() {
        format!(
            "{}: statuses are compared, and up to {JUDGED} bodies by --judge, before and after loads.",
            route.name
        )
    } else if rule.part == Part::Status && !is_json {
        format!("{}: the status alone is compared.", route.name)
    } else if some < all {
        let rest = if is_usual {
            "of the others the status"
        } else {
            "the others are not sent, for statuses differ"
        };
        format!(
            "{}: {bodies} of {} of {} are compared, {rest}.",
            route.name,
            figures::count(some as f64),
            figures::things(all as u64, "value"),
        )
    } else {
        format!("{}: status and {body} are compared.", route.name)
    });
    if let Some((_, answer)) = first
        .iter()
        .find(|(_, one)| (300..400).contains(&one.status))
    {
        learnt.notes.push(format!(
            "{}: status {} is a redirect, which counts as right and is not followed.",
            route.name, answer.status
        ));
    }
    learnt.known.extend(known);
    learnt.routes.push(route);
    Ok(())
}

impl Learnt {
    /// Sends the change the same requests and compares its answers with the base's.
    ///
    /// # Errors
    ///
    /// Returns an error if the change does not answer, or answers differently.
    pub fn compare(&self, change: &Asked<'_>) -> Result<(), AnswerError> {
        for request in &self.known {
            let answer = change.ask_in_earnest(request)?;
            let expected = &request.expected;
            if expected.allows(answer.status) {
                continue;
            }
            let mut place = String::new();
            let shown: fn(&Expected) -> String = if answer.status == expected.status {
                let Some(right) = Right::of(expected) else {
                    continue;
                };
                let received = answer.body.as_deref().unwrap_or_default();
                let is_right = match &self.judge {
                    Some(judge) => is_judged_same(judge, expected, &answer, change.interrupt)?,
                    None => right.is(received),
                };
                if is_right {
                    continue;
                }
                if expected.is_json()
                    && let Some(pointers) = right.differing(received)
                {
                    let pointers: Vec<String> = pointers.into_iter().take(POINTERS).collect();
                    place = format!(" at {}", pointers.join(", "));
                }
                |answer| format!("{:?}", body(answer))
            } else {
                |answer| format!("status {}", answer.status)
            };
            return Err(AnswerError::Other(format!(
                "answers differ{place}: {} is {} of the {}, and {} of the {}",
                name(request),
                shown(expected),
                self.who,
                shown(&answer),
                change.who
            )));
        }
        Ok(())
    }
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
