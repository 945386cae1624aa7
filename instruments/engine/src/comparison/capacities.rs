//! Capacities of two builds: searches by steps in turn, each on a fresh server.

use std::time::{Duration, Instant};

use statistics::capacity::{Ratio, Search, Searches};
use statistics::condition::Condition;
use statistics::figures;
use statistics::verdict::{Speed, Verdict, judge_interval};

use super::asked::{Comparison, ComparisonError, Side};
use super::round::{BASE, CHANGE, NAMES};
use crate::capacity::{Ended, Found, LOWEST, Wanted};
use crate::traffic::Spacing;

/// Time for a server that ran already to work off what a step has left, before the next one of the other.
const PAUSE: Duration = Duration::from_millis(500);

/// Conditions that both builds must keep, and the load that tries them.
#[derive(Debug, Clone, Copy)]
pub struct AtCapacity<'a> {
    /// Conditions; each [`Condition::is_goal`].
    pub conditions: &'a [Condition],
    /// Spacing of the requests.
    pub spacing: Spacing,
    /// Rate of the first step; `None` for half of what a short closed load reaches.
    pub first: Option<f64>,
}

/// Capacities of two builds, compared.
#[derive(Debug, Clone)]
pub struct Capacities {
    /// The verdict.
    pub verdict: Verdict<Speed>,
    /// Change to base; `None` until both have steps that held and others that failed.
    pub ratio: Option<Ratio>,
    /// Search for the capacity of the base.
    pub base: Found,
    /// Search for the capacity of the change.
    pub change: Found,
    /// Sentences that a reader must know beside the verdict.
    pub notes: Vec<String>,
}

impl Comparison<'_> {
    /// Compares the capacities of both builds, until they decide or the time is over.
    ///
    /// # Errors
    ///
    /// Returns an error if servers, answers or generator fail, or on Ctrl-C.
    pub fn capacities(&self, at: AtCapacity<'_>) -> Result<Capacities, ComparisonError> {
        let began = Instant::now();
        let (traffic, learnt) = self.learnt()?;
        let wanted = Wanted {
            traffic: &traffic,
            spacing: at.spacing,
            conditions: at.conditions,
            first: at.first,
            users: None,
            // Each step has a fresh server.
            warm_up: traffic.warm_up,
            at_most: self.at_most,
            cpus: &self.placement.generator,
            interrupt: self.interrupt,
            observer: self.observer,
        };
        let search = |index| -> Result<Search, ComparisonError> {
            Ok(match at.first {
                Some(rate) => Search::from(rate),
                None => wanted.begin(&self.fresh(index)?.target)?,
            })
        };
        let mut searches = Searches {
            base: search(BASE)?,
            change: search(CHANGE)?,
        };
        let mut found = [Found::default(), Found::default()];
        let mut verdict = None;
        for is_change in Searches::order(u32::MAX / 2) {
            let (index, search, so_far) = if is_change {
                (CHANGE, &mut searches.change, &mut found[CHANGE])
            } else {
                (BASE, &mut searches.base, &mut found[BASE])
            };
            let at_s = began.elapsed().as_secs_f64();
            let rate = search.next(at_s);
            if rate < LOWEST {
                so_far.ended = Ended::NothingHolds;
                verdict = Some(invalid(format!(
                    "not even {LOWEST} requests/s of the {} keep {}.",
                    NAMES[index],
                    in_words(at.conditions)
                )));
                break;
            }
            if began.elapsed() + wanted.takes(rate) > self.at_most {
                break;
            }
            let mut server = self.fresh(index)?;
            let who = format!(", {}", NAMES[index]);
            let number = so_far.steps.len();
            let tried = wanted.step(&server.target, (rate, at_s), number, &who)?;
            if let Some(process) = &mut server.process {
                process.is_alive_after(Duration::ZERO, "under load")?;
            } else {
                std::thread::sleep(PAUSE);
            }
            drop(server);
            if tried.wrong_answers > 0 {
                return Err(ComparisonError::Invalid(format!(
                    "under load the {} gave {}; a service must be right before it is fast.",
                    NAMES[index],
                    figures::things(tried.wrong_answers, "wrong answer")
                )));
            }
            so_far.add(tried, search);
            if search.is_generator_bound() {
                so_far.ended = Ended::Generator;
                verdict = Some(invalid(format!(
                    "the load generator is the limit: the {} sustains at least {} requests/s, and it can send no more.",
                    NAMES[index],
                    figures::count(search.held().unwrap_or_default().round())
                )));
                break;
            }
            if searches.is_look() || searches.is_last() {
                let now = self.judge_ratio(searches.ratio());
                if now.kind != Speed::Inconclusive || searches.is_last() {
                    for one in &mut found {
                        one.ended = Ended::Decided;
                    }
                    verdict = Some(now);
                    break;
                }
            }
        }
        let ratio = searches.ratio();
        let mut notes = learnt.notes();
        if matches!(self.base, Side::Running(_)) || matches!(self.change, Side::Running(_)) {
            notes.push(
                "the servers ran already: they were neither restarted nor pinned.".to_owned(),
            );
        }
        let [base, change] = found;
        Ok(Capacities {
            verdict: verdict.unwrap_or_else(|| self.judge_ratio(ratio)),
            ratio,
            base,
            change,
            notes,
        })
    }

    fn judge_ratio(&self, ratio: Option<Ratio>) -> Verdict<Speed> {
        let Some(Ratio { ratio, interval }) = ratio else {
            return Verdict {
                kind: Speed::Inconclusive,
                is_good: false,
                reason: "too little is known: the time was over before steps of both held and others failed; give it more \
                         time, with --at-most."
                    .to_owned(),
            };
        };
        let (low, high) = interval;
        let seen = format!(
            "capacity of the change {} times as good ({} to {})",
            figures::ratio(ratio),
            figures::ratio(low),
            figures::ratio(high)
        );
        judge_interval(&seen, interval, self.goal)
    }
}

impl Capacities {
    /// Returns the result of a comparison that could not be made, for this reason.
    pub fn invalid(reason: String) -> Self {
        Self {
            verdict: invalid(reason),
            ratio: None,
            base: Found::default(),
            change: Found::default(),
            notes: Vec::new(),
        }
    }
}

fn invalid(reason: String) -> Verdict<Speed> {
    Verdict {
        kind: Speed::Invalid,
        is_good: false,
        reason,
    }
}

fn in_words(conditions: &[Condition]) -> String {
    let words: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    words.join(" and ")
}
