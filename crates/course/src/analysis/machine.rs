//! CPU time that a run lacked, and the decision whether that may be to blame.
//!
//! A fix may look worse than it is if other programs take CPU time from the server or the load generator, or if
//! the generator has no CPU time left. So a fix that falls short may still be right. A proof and a check use the
//! same rule. Whether a fix may also look better than it is, [`Noise`](crate::measurement::chapter_file::Noise)
//! says for each chapter.

use crate::measurement::record::Round;
use engine::outcome::GeneratorFacts;
use statistics::figures;

/// Largest share of the time for which the generator may wait for its CPU. A generator that waits longer is
/// late with everything that it sends and times.
const WAITED: f64 = 0.5;
/// Largest share of the machine's CPU time that other programs may use. One busy core of two is below it:
/// every chapter's grade tolerates that.
const ELSEWHERE: f64 = 0.6;
/// Smallest share of the two limits that is worth reporting.
const TOLD: f64 = 0.2;

/// Cause of missing CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    /// Other programs had the generator's CPU for this share of the time.
    GeneratorWaited(f64),
    /// Other programs used this share of the machine's CPU time.
    UsedElsewhere(f64),
    /// The generator used all the CPU time that it was given.
    GeneratorBound {
        /// The share of its CPU time that it used.
        used: f64,
        /// The share that other programs had.
        waited: f64,
    },
}

impl Cause {
    /// Returns the causes that a round shows.
    fn of(round: &Round) -> impl Iterator<Item = Self> {
        let generator = &round.outcome.generator;
        let waited = generator.waited_share;
        let bound = generator.cpu_share.filter(|_| generator.is_bound());
        let bound = bound.map(|used| Self::GeneratorBound {
            used,
            waited: waited.unwrap_or(0.0),
        });
        let waited = waited.map(Self::GeneratorWaited);
        let elsewhere = round.elsewhere_share.map(Self::UsedElsewhere);
        [waited, elsewhere, bound].into_iter().flatten()
    }

    /// Returns the size of the cause, in multiples of its limit.
    fn severity(self) -> f64 {
        match self {
            Self::GeneratorWaited(share) => share / WAITED,
            Self::UsedElsewhere(share) => share / ELSEWHERE,
            Self::GeneratorBound { used, waited } => 1.0 + (used + waited) / GeneratorFacts::BOUND,
        }
    }
}

/// Returns whether other programs may have kept the generator from reading answers when they came. It then
/// counts answers of the warm-up in the recorded span.
pub(crate) fn may_have_read_late(round: &Round) -> bool {
    Cause::of(round).any(|cause| cause.severity() > TOLD)
}

/// Worst disturbance of the rounds that a result rests on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Machine {
    /// The system does not report who uses the CPUs.
    Unknown,
    /// The machine was quiet enough for no remark.
    Quiet,
    /// Something is worth reporting, and may be to blame.
    Disturbed(Disturbance),
}

/// The worst disturbance of the rounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Disturbance {
    cause: Cause,
    round: String,
}

impl Machine {
    /// Finds the worst disturbance in rounds, each with a name that a reader can find it by.
    pub(crate) fn during<'r>(rounds: impl Iterator<Item = (String, &'r Round)>) -> Self {
        Self::worst(rounds, |_| true)
    }

    /// Finds the worst disturbance by other programs, as [`Machine::during`] finds that by any cause.
    pub(crate) fn beside_others<'r>(rounds: impl Iterator<Item = (String, &'r Round)>) -> Self {
        Self::worst(rounds, |cause| {
            !matches!(cause, Cause::GeneratorBound { .. })
        })
    }

    fn worst<'r>(
        rounds: impl Iterator<Item = (String, &'r Round)>,
        counts: impl Fn(&Cause) -> bool,
    ) -> Self {
        let mut machine = Self::Unknown;
        for (name, round) in rounds {
            for cause in Cause::of(round).filter(&counts) {
                machine.add(cause, &name);
            }
        }
        machine
    }

    /// Finds the disturbance while other programs used this share of the machine's CPU time; `when` is its name.
    pub(crate) fn beside(elsewhere_share: Option<f64>, when: &str) -> Self {
        let mut machine = Self::Unknown;
        if let Some(share) = elsewhere_share {
            machine.add(Cause::UsedElsewhere(share), when);
        }
        machine
    }

    /// Takes another cause into account, which counts if it is worse than all before.
    fn add(&mut self, cause: Cause, round: &str) {
        let most = match self {
            Self::Disturbed(one) => one.cause.severity(),
            Self::Unknown | Self::Quiet => TOLD,
        };
        if cause.severity() > most {
            *self = Self::Disturbed(Disturbance {
                cause,
                round: round.to_owned(),
            });
        } else if *self == Self::Unknown {
            *self = Self::Quiet;
        }
    }

    /// Returns whether a fix may have looked worse than it is because of the machine.
    pub(crate) fn may_be_to_blame(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Quiet => false,
            Self::Disturbed(one) => one.cause.severity() > 1.0,
        }
    }

    /// Returns whether the machine was too busy for a comparison, as far as the system reports it.
    pub(crate) fn was_busy(&self) -> bool {
        *self != Self::Unknown && self.may_be_to_blame()
    }

    /// Returns whether other programs had the CPU time that was missing.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Unknown | Self::Quiet => false,
            Self::Disturbed(one) => match one.cause {
                Cause::GeneratorWaited(_) | Cause::UsedElsewhere(_) => true,
                Cause::GeneratorBound { waited, .. } => waited > TOLD * WAITED,
            },
        }
    }

    /// Formats the cause of missing CPU time and its size as a clause; `None` for a quiet machine.
    pub(crate) fn blame(&self) -> Option<String> {
        let Disturbance { cause, round } = match self {
            Self::Quiet => return None,
            Self::Unknown => {
                return Some(
                    "this system does not report who uses the CPUs, so other programs may be to blame"
                        .to_owned(),
                );
            }
            Self::Disturbed(one) => one,
        };
        let percent = figures::percent;
        Some(match cause {
            Cause::GeneratorWaited(share) => format!(
                "other programs took {} of the load generator's CPU in {round}",
                percent(*share)
            ),
            Cause::UsedElsewhere(share) => format!(
                "other programs used {} of the machine's CPU time in {round}",
                percent(*share)
            ),
            Cause::GeneratorBound { waited, .. } if *waited > TOLD * WAITED => format!(
                "other programs took {} of the load generator's CPU in {round}, and it used the rest",
                percent(*waited)
            ),
            Cause::GeneratorBound { used, .. } => format!(
                "the load generator used {} of its CPU in {round}, so the service may be faster than it can measure",
                percent(*used)
            ),
        })
    }

    /// Returns the remedy as a sentence without a full stop; empty for a quiet machine.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Quiet => "",
            Self::Unknown => "Close other programs and run this again",
            Self::Disturbed(_) if self.is_shared() => "Close them and run this again",
            Self::Disturbed(_) => "Run this on a machine with more CPUs",
        }
    }
}
