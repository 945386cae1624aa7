//! The contract: everything that each variant must do, whatever it gains.

use crate::measurement::attempt::{Failure, Observed, Tested, Trial, Wait};
use serde::{Deserialize, Serialize};
use statistics::figures;

use super::machine;
use crate::analysis::machine::Machine;
use crate::analysis::validity::{fault, is_late};

/// Parts of the contract that the exercise kept or broke.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Parts that were tested and kept, each in a few words.
    pub held: Vec<String>,
    /// Parts that were broken. A part is in neither list if it was not tested, or if the machine may be to blame.
    pub broken: Vec<String>,
}

/// A part that was broken, for people.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) reason: String,
    pub(super) detail: Option<String>,
    /// Name in words of the contract test that failed; `None` if it is another part.
    pub(super) test: Option<String>,
    /// Use of the machine, if it was broken by answers that did not come in time.
    pub(super) late: Option<Late>,
}

/// Use of the machine while answers did not come in time.
#[derive(Debug)]
pub(super) struct Late {
    machine: Machine,
    /// `true` if the server was idle, and so waited for something else than a CPU.
    is_idle: bool,
}

impl Late {
    pub(super) fn of(wait: Wait, when: &str) -> Self {
        Self {
            machine: Machine::beside(wait.elsewhere_share, when),
            is_idle: wait.is_idle,
        }
    }

    /// Returns the use of the machine while a test failed; `None` if no machine can be the cause of the failure.
    pub(super) fn of_test(failure: &Failure) -> Option<Self> {
        let wait = failure.wait.filter(|_| failure.panic.is_none())?;
        Some(Self::of(wait, "the contract tests"))
    }

    /// Returns the machine if it may be to blame: it was busy, and the server did not wait for something else.
    pub(super) fn excuse(&self) -> Option<&Machine> {
        let is_excused = self.machine.was_busy() && !self.is_idle;
        is_excused.then_some(&self.machine)
    }
}

impl Broken {
    fn because(reason: String) -> Self {
        Self {
            reason,
            detail: None,
            test: None,
            late: None,
        }
    }

    /// Returns the faults of the problem's round for which the machine may be to blame.
    pub(super) fn late_problem(trial: &Trial) -> Option<Self> {
        let outcome = &trial.problem.round.outcome;
        let late = Late {
            machine: machine(trial),
            is_idle: false,
        };
        if !is_late(outcome) || late.excuse().is_none() {
            return None;
        }
        Some(Self {
            late: Some(late),
            ..Self::because(format!("the problem: {}", fault(outcome)?))
        })
    }

    /// Returns the machine that may be to blame for it.
    pub(super) fn excuse(&self) -> Option<&Machine> {
        self.late.as_ref()?.excuse()
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

    /// Makes the contract from tests, with the first failure among the tests for every variant. One that no machine can
    /// be to blame for is before the others.
    pub(super) fn tested(tests: &[Tested]) -> (Self, Option<Broken>) {
        let mut contract = Self {
            held: vec![Self::COMPILES.to_owned(), Self::LISTENS.to_owned()],
            broken: Vec::new(),
        };
        let mut broken = Vec::new();
        for test in tests {
            let Some(failure) = &test.failure else {
                contract.held.push(test.name.clone());
                continue;
            };
            let late = Late::of_test(failure);
            if late.as_ref().and_then(Late::excuse).is_none() {
                contract.broken.push(test.name.clone());
            }
            // Tests that only a fix can pass are judged later, when the fault is gone under the check's load.
            if !test.of_a_fix {
                let what = match failure.panic {
                    Some(_) => "the exercise panics",
                    None => test.name.as_str(),
                };
                broken.push(Broken {
                    reason: format!("{what}: {}.", failure.sentence),
                    detail: failure.panic.clone(),
                    test: Some(test.name.clone()),
                    late,
                });
            }
        }
        (contract, first(broken))
    }

    /// Makes the contract of a trial, with the first broken part. One that no machine can be to blame for is before the
    /// others.
    pub(super) fn of(trial: &Trial) -> (Self, Option<Broken>) {
        let parts = [
            ("no panic", panic(trial)),
            ("the server stays up", ended(trial)),
            ("right answers to all requests", misbehaviour(trial)),
        ];
        let (mut contract, of_tests) = Self::tested(&trial.tests);
        let mut all: Vec<Broken> = of_tests.into_iter().collect();
        for (name, broken) in parts {
            match &broken {
                None => contract.held.push(name.to_owned()),
                Some(broken) if broken.excuse().is_none() => contract.broken.push(name.to_owned()),
                Some(_) => {}
            }
            all.extend(broken);
        }
        (contract, first(all))
    }
}

/// Returns the first that no machine can be to blame for, or else the first.
fn first(mut broken: Vec<Broken>) -> Option<Broken> {
    let certain = broken.iter().position(|one| one.excuse().is_none());
    let index = certain.unwrap_or_default();
    (index < broken.len()).then(|| broken.swap_remove(index))
}

fn panic(trial: &Trial) -> Option<Broken> {
    let panic = trial.exercise.panics.first()?;
    Some(Broken {
        detail: Some(panic.clone()),
        ..Broken::because("the exercise panics under load.".to_owned())
    })
}

fn ended(trial: &Trial) -> Option<Broken> {
    let why = trial.exercise.ended.as_deref()?;
    let reason = format!("the exercise ended while it was under load{why}.");
    Some(Broken::because(reason))
}

fn misbehaviour(trial: &Trial) -> Option<Broken> {
    let Observed {
        round, is_stuck, ..
    } = &trial.exercise;
    let outcome = &round.outcome;
    let after = if *is_stuck {
        ", nor a single request after the load, for which it did not lack a CPU"
    } else {
        ""
    };
    let is_silent =
        outcome.wrong_answers == 0 && outcome.error_count() == 0 && outcome.completed == 0;
    let reason = if is_silent {
        format!(
            "the exercise answered nothing in {} s{after}; it may wait for a lock that it holds itself.",
            figures::ratio(outcome.seconds)
        )
    } else {
        format!("the exercise: {}", fault(outcome)?)
    };
    let late = is_late(outcome).then(|| Late {
        machine: machine(trial),
        is_idle: *is_stuck,
    });
    Some(Broken {
        late,
        ..Broken::because(reason)
    })
}
