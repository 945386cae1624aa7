//! The contract: everything that each variant must do, whatever it gains.

use crate::measurement::attempt::{Tested, Trial};
use engine::outcome::Outcome;
use serde::{Deserialize, Serialize};
use statistics::figures;

use crate::analysis::validity::fault;

/// Parts of the contract that the exercise kept or broke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Parts that were tested and kept, each in a few words.
    pub held: Vec<String>,
    /// Parts that were broken.
    pub broken: Vec<String>,
}

/// A part that was broken, for people.
#[derive(Debug)]
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

    /// Makes the contract of an exercise that got no further than this part.
    pub(super) fn broken_at(part: &str) -> Self {
        let all = [Self::COMPILES, Self::LISTENS];
        let held = all.into_iter().take_while(|one| *one != part);
        Self {
            held: held.map(str::to_owned).collect(),
            broken: vec![part.to_owned()],
        }
    }

    /// Makes the contract from tests, with the first failure among the tests for every variant.
    pub(super) fn tested(tests: &[Tested]) -> (Self, Option<Broken>) {
        let mut contract = Self {
            held: vec![Self::COMPILES.to_owned(), Self::LISTENS.to_owned()],
            broken: Vec::new(),
        };
        let mut first = None;
        for test in tests {
            let Some(failure) = &test.failure else {
                contract.held.push(test.name.clone());
                continue;
            };
            contract.broken.push(test.name.clone());
            // Tests that only a fix can pass are judged later, when the fault is gone under the check's load.
            if !test.of_a_fix && first.is_none() {
                let what = match failure.panic {
                    Some(_) => "the exercise panics",
                    None => test.name.as_str(),
                };
                first = Some(Broken {
                    reason: format!("{what}: {}.", failure.sentence),
                    detail: failure.panic.clone(),
                });
            }
        }
        (contract, first)
    }

    /// Makes the contract of a trial, with the first broken part.
    pub(super) fn of(trial: &Trial) -> (Self, Option<Broken>) {
        let parts = [
            ("no panic", panic(trial)),
            ("the server stays up", ended(trial)),
            (
                "right answers to all requests",
                misbehaviour(&trial.exercise.round.outcome),
            ),
        ];
        let (mut contract, mut first) = Self::tested(&trial.tests);
        for (name, broken) in parts {
            let list = match broken {
                None => &mut contract.held,
                Some(_) => &mut contract.broken,
            };
            list.push(name.to_owned());
            first = first.or(broken);
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
