//! What every variant must do, whatever it gains: the contract.

use measurement::{
    attempt::Trial,
    chapter_file::{ChapterFile, DATABASE_CALLS},
    contract::Tried,
    figures,
    outcome::{InAll, Outcome},
    record::Round,
};
use serde::{Deserialize, Serialize};

use crate::validity::fault;

/// Which parts of the contract the exercise kept, and which it broke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Parts that were looked at and kept, each in a few words.
    pub held: Vec<String>,
    /// Parts that were broken.
    pub broken: Vec<String>,
}

/// What was found of one part.
enum Part {
    /// The chapter does not ask for it, or the server does not tell.
    Unasked,
    Kept,
    Broken(Broken),
}

impl From<Option<Broken>> for Part {
    fn from(broken: Option<Broken>) -> Self {
        broken.map_or(Self::Kept, Self::Broken)
    }
}

/// A part that was broken, for people.
pub(super) struct Broken {
    pub(super) reason: String,
    pub(super) detail: Option<String>,
}

impl Broken {
    fn because(reason: String) -> Self {
        Self {
            reason,
            detail: None,
        }
    }
}

impl Contract {
    pub(super) const COMPILES: &str = "it compiles";
    pub(super) const LISTENS: &str = "it listens";

    /// Of an exercise that got no further than this part.
    pub(super) fn broken_at(part: &str) -> Self {
        let all = [Self::COMPILES, Self::LISTENS];
        let held = all.into_iter().take_while(|one| *one != part);
        Self {
            held: held.map(str::to_owned).collect(),
            broken: vec![part.to_owned()],
        }
    }

    /// Of promises that were tried, one of them in vain, with what was seen of that one.
    pub(super) fn tried(tried: &[Tried]) -> (Self, Option<Broken>) {
        let mut contract = Self::starting();
        let mut first = None;
        for promise in tried {
            match &promise.broken {
                None => contract.held.push(promise.name.clone()),
                // Judged when the fault is gone from the check's load.
                Some(_) if promise.of_fix => {}
                Some(broken) => {
                    contract.broken.push(promise.name.clone());
                    let reason = if promise.panic.is_some() {
                        "the exercise panics".to_owned()
                    } else {
                        format!("the contract has it that {}", promise.name)
                    };
                    let reason = format!("{reason}: {broken}.");
                    let detail = promise.panic.clone();
                    first = first.or(Some(Broken { reason, detail }));
                }
            }
        }
        (contract, first)
    }

    /// Of an exercise that came to listen.
    fn starting() -> Self {
        Self {
            held: vec![Self::COMPILES.to_owned(), Self::LISTENS.to_owned()],
            broken: Vec::new(),
        }
    }

    /// Every part, and the first that is broken.
    pub(super) fn of(chapter: &ChapterFile, trial: &Trial) -> (Self, Option<Broken>) {
        let parts: [(&str, Part); 6] = [
            ("no panic", panic(trial).into()),
            ("the server stays up", ended(trial).into()),
            (
                "right answers to all requests",
                misbehaviour(&trial.exercise.round.outcome).into(),
            ),
            (
                "the work is done for every answer",
                uncalled(chapter, trial),
            ),
            (
                "every write reaches the database",
                unrecorded(chapter, trial),
            ),
            (
                "no answer comes before its work is done",
                hasty(chapter, trial),
            ),
        ];
        let (mut contract, mut first) = Self::tried(&trial.tried);
        for (name, looked_at) in parts {
            match looked_at {
                Part::Unasked => {}
                Part::Kept => contract.held.push(name.to_owned()),
                Part::Broken(broken) => {
                    contract.broken.push(name.to_owned());
                    first = first.or(Some(broken));
                }
            }
        }
        (contract, first)
    }
}

fn panic(trial: &Trial) -> Option<Broken> {
    let panic = trial.exercise.panics.first()?;
    Some(Broken {
        reason: "the exercise panics under load.".to_owned(),
        detail: Some(panic.clone()),
    })
}

fn ended(trial: &Trial) -> Option<Broken> {
    let why = trial.exercise.ended.as_deref()?;
    let reason = format!("the exercise ended while it was under load{why}.");
    Some(Broken::because(reason))
}

fn misbehaviour(outcome: &Outcome) -> Option<Broken> {
    if outcome.wrong_answers == 0 && outcome.error_count() == 0 && outcome.completed == 0 {
        return Some(Broken::because(format!(
            "the exercise answered nothing in {} s; it may wait for a lock that it holds itself.",
            figures::ratio(outcome.seconds)
        )));
    }
    fault(outcome).map(|cause| Broken::because(format!("the exercise: {cause}")))
}

/// Answers as the server's counters count, which begin with the warm-up: with those of the recorded span
/// alone, an edit could leave out as much work as the warm-up has.
fn in_all(outcome: &Outcome) -> InAll {
    outcome.in_all.unwrap_or(InAll {
        reads: outcome.completed.saturating_sub(outcome.writes),
        writes: outcome.writes,
    })
}

/// Answers that were got by leaving out the work.
fn uncalled(chapter: &ChapterFile, trial: &Trial) -> Part {
    let (Some(metric), Some(calls)) = (chapter.calls_metric(), trial.exercise.calls) else {
        return Part::Unasked;
    };
    let reads = in_all(&trial.exercise.round.outcome).reads;
    (calls < reads)
        .then(|| {
            let (who, what) = match metric {
                DATABASE_CALLS => ("the database saw", figures::things(calls, "call")),
                other => (other, format!("is {}", figures::count(calls as f64))),
            };
            Broken::because(format!(
                "the exercise gave {}, but {who} {what}; every answer needs a call of its own.",
                figures::things(reads, "answer"),
            ))
        })
        .into()
}

fn unrecorded(chapter: &ChapterFile, trial: &Trial) -> Part {
    let (Some(_), Some(records)) = (&chapter.write, trial.exercise.database_records) else {
        return Part::Unasked;
    };
    let writes = in_all(&trial.exercise.round.outcome).writes;
    (records < writes).then(|| {
        Broken::because(format!(
            "the exercise accepted {}, but the database recorded {}; every write needs a record.",
            figures::things(writes, "write"),
            figures::count(records as f64)
        ))
    }).into()
}

/// Answers for less CPU time than their work takes, on average.
fn idle(round: &Round, work_ms: f64) -> Option<Broken> {
    let answers = round.server_answers? as f64;
    let used_ms = 1e3 * round.server_cpu_s? / answers;
    (used_ms < work_ms).then(|| {
        Broken::because(format!(
            "the exercise used {} of CPU time for an answer, but its work takes {} at least; do it for \
             every answer.",
            figures::milliseconds(used_ms),
            figures::milliseconds(work_ms)
        ))
    })
}

/// Answers that came sooner, or for less CPU time, than what they need can take.
fn hasty(chapter: &ChapterFile, trial: &Trial) -> Part {
    let work = [chapter.check.work_ms_at_least, trial.work_ms];
    let work = work.into_iter().flatten().reduce(f64::max);
    let (shortest, needed) = match (chapter.law.shortest_answer_ms(), work) {
        (Some(call), _) => (call, "its database call"),
        (None, Some(work)) => match idle(&trial.exercise.round, work) {
            Some(broken) => return Part::Broken(broken),
            None => (work, "its work"),
        },
        (None, None) => return Part::Unasked,
    };
    let fastest = trial.exercise.round.outcome.latency.min_ms;
    // Histograms round, and a timer may fire a tick early.
    let too_fast = fastest < 0.96 * shortest || fastest.is_nan();
    too_fast.then(|| {
        Broken::because(format!(
            "the exercise answered within {}, but {needed} takes {} at least; do it for every answer.",
            figures::milliseconds(fastest),
            figures::milliseconds(shortest)
        ))
    }).into()
}
