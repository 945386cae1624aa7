//! The right answers of a service nobody described: what its base answers, learnt before the load.

use std::time::{Duration, Instant};

use crate::figures;
use crate::load::Target;
use crate::load::interrupt::Interrupt;
use crate::traffic::{Expected, Request, Route, Traffic};

/// Values of a route whose answers are learnt, evenly spread over all; of the others the status.
const LEARNT: usize = 64;
/// Learning a route ends after so long, with what is known then.
const LONGEST: Duration = Duration::from_secs(10);
/// Between the two times that an answer is asked for: a clock in it shows whole seconds.
const APART: Duration = Duration::from_millis(1100);
/// How often an answer is asked for again that has a status which is allowed beside the right one, and
/// the pause before.
const ASKED_AGAIN: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// Longer bodies are not kept for comparison.
const LONGEST_BODY: usize = 1 << 20;
/// How much of a body a message shows.
const SHOWN: usize = 80;

/// What is asked for is not what answers.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// A status that nobody wants to measure.
    #[error("{0}")]
    Status(String),
    /// No answer at all, or of the change another than of the base.
    #[error("{0}")]
    Other(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// What was learnt.
#[derive(Debug, Clone)]
pub struct Learnt {
    /// The routes, with what is expected of each request; the bystander's last.
    routes: Vec<Route>,
    /// What is compared, a sentence each.
    pub notes: Vec<String>,
    /// Requests whose answer is known, of all routes.
    known: Vec<Request>,
}

/// Whom to ask, and how long an answer may take.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What messages call it.
    pub who: &'a str,
    /// Where it listens.
    pub target: &'a Target,
    /// An answer that takes longer is none.
    pub time_out: Duration,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl Asked<'_> {
    fn ask(&self, request: &Request) -> Result<Expected, AnswerError> {
        if self.interrupt.is_set() {
            return Err(AnswerError::Interrupted);
        }
        let answers = crate::load::ask(self.target.clone(), [request], self.time_out);
        let answer =
            answers.and_then(|mut answers| answers.pop().ok_or("nothing was asked".into()));
        answer.map_err(|reason| {
            let (who, request) = (self.who, name(request));
            let got = if reason.starts_with("grpc-status") {
                "is answered with"
            } else {
                "got no answer:"
            };
            AnswerError::Other(format!("{who}: {request} {got} {reason}"))
        })
    }

    /// An answer to learn from: what is allowed beside it, because the service has too much to do, says
    /// nothing. Such an answer is returned where it gives no other.
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

/// Learns the answers to `traffic`, its bystander included: always the status, and the body where asking twice yields the
/// same. With `status` nothing is learnt, and every answer must have it.
///
/// # Errors
///
/// When there is no answer, or one that nobody wants to measure.
pub fn learn(
    server: &Asked<'_>,
    traffic: &Traffic,
    status: Option<u16>,
) -> Result<Learnt, AnswerError> {
    let bystander = traffic.bystander.iter().map(|paced| &paced.route);
    let routes: Vec<&Route> = traffic.routes.iter().chain(bystander).collect();
    let mut learnt = Learnt {
        routes: Vec::new(),
        notes: Vec::new(),
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
    if let Some(expected) = status {
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
    for (route, first) in routes.into_iter().zip(firsts) {
        second_time(server, route, &first, &mut learnt)?;
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
        // One value that is missing is a part of the load; a route without any other is none.
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

fn second_time(
    server: &Asked<'_>,
    route: &Route,
    first: &Answers,
    learnt: &mut Learnt,
) -> Result<(), AnswerError> {
    let mut route = route.clone();
    let mut is_same = true;
    for (index, answer) in first {
        let again = server.ask_in_earnest(&route.requests[*index])?;
        is_same &= again == *answer;
        if !is_same {
            break;
        }
    }
    let usual = first[0].1.status;
    let is_usual = first.iter().all(|(_, answer)| answer.status == usual);
    let mut known: Vec<Request> = Vec::new();
    for (index, answer) in first {
        let request = &mut route.requests[*index];
        let body = answer
            .body
            .clone()
            .filter(|body| body.len() <= LONGEST_BODY);
        expect(request, answer.status, body.filter(|_| is_same));
        known.push(request.clone());
    }
    let (all, some) = (route.requests.len(), known.len());
    if is_usual {
        let is_known = |index: usize| first.iter().any(|(known, _)| *known == index);
        for (index, request) in route.requests.iter_mut().enumerate() {
            if !is_known(index) {
                expect(request, usual, None);
            }
        }
    } else {
        // The status of a value that nobody asked for cannot be known.
        route.requests.clone_from(&known);
    }
    learnt.notes.push(if !is_same {
        format!(
            "{}: its body changes from one answer to the next, so the status alone is compared.",
            route.name
        )
    } else if some < all {
        let rest = if is_usual {
            "of the others the status"
        } else {
            "the others are not sent, for statuses differ"
        };
        format!(
            "{}: the bodies of {} of {} are compared, {rest}.",
            route.name,
            figures::count(some as f64),
            figures::things(all as u64, "value"),
        )
    } else {
        format!("{}: status and body are compared.", route.name)
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
    /// Puts what was learnt into the load that it was learnt of.
    pub fn complete(&self, traffic: &mut Traffic) {
        let own = traffic.routes.len();
        traffic.routes = self.routes[..own].to_vec().into();
        if let (Some(paced), Some(route)) = (&mut traffic.bystander, self.routes.get(own)) {
            paced.route = route.clone();
        }
    }

    /// Asks the change what the base was asked.
    ///
    /// # Errors
    ///
    /// When it does not answer, or with something else.
    pub fn compare(&self, change: &Asked<'_>) -> Result<(), AnswerError> {
        for request in &self.known {
            let answer = change.ask_in_earnest(request)?;
            let expected = &request.expected;
            if expected.allows(answer.status) {
                continue;
            }
            let shown: fn(&Expected) -> String = if answer.status != expected.status {
                |answer| format!("status {}", answer.status)
            } else if expected.body.is_some() && answer.body != expected.body {
                |answer| format!("{:?}", body(answer))
            } else {
                continue;
            };
            return Err(AnswerError::Other(format!(
                "answers differ: {} is {} of the base, and {} of the change",
                name(request),
                shown(expected),
                shown(&answer)
            )));
        }
        Ok(())
    }
}

/// What is allowed beside it stays allowed.
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
