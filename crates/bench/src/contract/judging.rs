//! Whether a promise was kept: what was seen, beside the problem and beside the promise's limits.

use std::collections::HashSet;

use measurement::contract::{Promise, Request};
use measurement::figures;
use measurement::metrics::Metrics;

use super::asking::Answer;

/// So many characters of a request and of an answer are told.
const QUOTED: usize = 60;

/// What a server did.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Each request with what came back, in the order of their numbers; empty where users hung up.
    pub(super) answers: Vec<(Request, Answer)>,
    /// CPU time of an answer as a share of what it takes alone, where that is looked at and the system
    /// tells it.
    pub(super) cpu_of_one: Option<f64>,
    pub(super) metrics: Metrics,
    pub(super) panic: Option<String>,
    /// Why, as far as is known, if the server ended.
    pub(super) ended: Option<String>,
}

/// The first thing that is not as it should be, in a phrase: as with the problem where that was asked,
/// too.
pub(super) fn fault(promise: &Promise, right: Option<&Seen>, own: &Seen) -> Option<String> {
    if let Some(why) = &own.ended {
        return Some(format!("the server ended{why}"));
    }
    let limits = [
        (
            &promise.reaches,
            "at least",
            "needed",
            f64::ge as fn(&f64, &f64) -> bool,
        ),
        (&promise.at_most, "at most", "allowed", f64::le),
    ];
    let beyond = || {
        limits.iter().find_map(|(limits, bound, word, keeps)| {
            limits.iter().find_map(|(name, limit)| {
                let own = own.metrics.get(name);
                let kept = own.is_some_and(|own| keeps(&own, limit));
                let is = value(own);
                (!kept).then(|| format!("`{name}` is {is}, but {bound} {limit} is {word}"))
            })
        })
    };
    let shared = || {
        let needed = promise.cpu_of_one_at_least?;
        let share = own.cpu_of_one?;
        (share < needed).then(|| {
            format!(
                "an answer to one of many takes {} of the CPU time that one alone takes, but at least \
                 {} is needed",
                figures::percent(share),
                figures::percent(needed)
            )
        })
    };
    match right {
        Some(right) => difference(promise, right, own),
        None => unanswered(own),
    }
    .or_else(beyond)
    .or_else(shared)
}

/// The first request that was not answered with success.
fn unanswered(own: &Seen) -> Option<String> {
    let mut answers = own.answers.iter();
    let (request, answer) = answers.find(|(_, answer)| !matches!(answer, Answer::Success(_)))?;
    let request = shortened(&request.to_string());
    Some(format!("`{request}` {}", as_verb(answer)))
}

/// The first thing that is not as with the problem.
fn difference(promise: &Promise, right: &Seen, own: &Seen) -> Option<String> {
    let mut both = right.answers.iter().zip(&own.answers);
    if let Some(((request, right), (_, own))) = both.find(|(right, own)| right.1 != own.1) {
        let (right, own) = told(right, own);
        let request = shortened(&request.to_string());
        return Some(format!("`{request}` {own}, where the problem {right}"));
    }
    let compared = |names: &[String], is_kept: fn(Option<f64>, Option<f64>) -> bool| {
        names.iter().find_map(|name| {
            let (right, own) = (right.metrics.get(name), own.metrics.get(name));
            let (is, has) = (value(own), value(right));
            let kept = is_kept(right, own);
            (!kept).then(|| format!("`{name}` is {is}, where the problem has {has}"))
        })
    };
    compared(&promise.counts, |right, own| own == right).or_else(|| {
        compared(&promise.at_least, |right, own| {
            own >= right.map(|r| 0.9 * r)
        })
    })
}

/// Which items, with commas between them, `list` has and `other` has not, in a few words.
fn missing(list: &str, other: &str) -> Option<String> {
    let others: HashSet<&str> = other.split(',').collect();
    let missing = list.split(',').filter(|item| !others.contains(item));
    let missing: Vec<&str> = missing.collect();
    match *missing.as_slice() {
        _ if !list.contains(',') => None,
        [] => None,
        [one] => Some(format!("`{one}`")),
        [one, ..] => Some(format!("{} items, `{one}` for one", missing.len())),
    }
}

fn value(of: Option<f64>) -> String {
    of.map_or_else(|| "not told".to_owned(), |value| value.to_string())
}

/// The beginning of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Both answers as verbs. Of long lists that differ in what they hold, that is told.
fn told(right: &Answer, own: &Answer) -> (String, String) {
    if let (Answer::Success(right), Answer::Success(own)) = (right, own)
        && right.len().max(own.len()) > QUOTED
    {
        let lacks = missing(right, own).map(|lacks| format!("lacks {lacks}"));
        let lacks =
            lacks.or_else(|| missing(own, right).map(|more| format!("has {more} too many")));
        if let Some(lacks) = lacks {
            let many = right.split(',').count();
            return (format!("answers {many} items"), lacks);
        }
    }
    (as_verb(right), as_verb(own))
}

fn as_verb(answer: &Answer) -> String {
    match answer {
        // Its body was not read.
        Answer::Success(body) if body.is_empty() => "answers".to_owned(),
        Answer::Success(body) => format!("answers {:?}", shortened(body)),
        Answer::Refusal(status) => format!("answers {status}"),
        Answer::Missing(why) => format!("gives no answer ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many topics, those that are not there are told, and not how long the lists are.
    #[test]
    fn a_list_is_told_by_what_it_lacks() {
        let list = |topics: std::ops::Range<u32>| {
            let topics: Vec<String> = topics.map(|n| format!("topic{n}")).collect();
            Answer::Success(topics.join(","))
        };
        for (own, said) in [
            (list(0..29), "lacks `topic29`"),
            (list(5..30), "lacks 5 items, `topic0` for one"),
            (list(0..31), "has `topic30` too many"),
        ] {
            let told = told(&list(0..30), &own);
            assert_eq!(told, ("answers 30 items".to_owned(), said.to_owned()));
        }
        let short = told(&list(0..2), &Answer::Refusal("404".to_owned()));
        assert_eq!(short.0, "answers \"topic0,topic1\"");
        assert_eq!(short.1, "answers 404");
    }
}
