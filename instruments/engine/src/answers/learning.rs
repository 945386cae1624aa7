//! Learning of right answers, by asking for each twice.

use std::time::{Duration, Instant};

use super::difference::{Changes, body, is_judged_same, name};
use super::draw::{Draw, LEARNT};
use super::{
    APART, AnswerError, Asked, Compared, How, JUDGED, Learnt, LearntRoute, expect, route_of,
};
use crate::traffic::{Expected, Part, Request, Route, Rule, Traffic};

/// Approximate time limit for learning one route. The first pass stops after half of it; the second repeats the same
/// requests.
const LONGEST: Duration = Duration::from_secs(10);
/// Number of values that may be missing, one after the other, before a route is rejected for its status.
const MISSING: usize = 8;
/// Largest number of requests that are sent at once to learn their answers.
const AT_ONCE: usize = 8;

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
        draw: Draw::none(),
        rule: Rule::default(),
        compared: Compared::Given,
        is_usual: true,
        known: vec![first.clone()],
        count: 1,
        advice: None,
    })
}

/// Requests of a route by their index, with the answer that each got.
pub(super) type Answers = Vec<(usize, Expected)>;

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
pub(super) fn asked(
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
