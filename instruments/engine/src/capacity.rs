//! Search for the capacity of a service: open loads at one rate after the other, as [`statistics::capacity`] decides.

use std::time::{Duration, Instant};

use children::Interrupt;
use serde::Serialize;
use statistics::capacity::{Capacity, Search, Step};
use statistics::condition::{Condition, Figure};
use statistics::figures;
use statistics::metric::answers_for;

use crate::event::Event;
use crate::load::ask::ask;
use crate::load::{self, GeneratorError, GroupOutcome, Progress, Settings, Target, TrafficOutcome};
use crate::traffic::{Arrivals, Spacing, Traffic};

/// Shortest and longest time that a step records, in seconds.
const RECORDED_S: (f64, f64) = (2.0, 10.0);
/// Shortest time of a step that is not recorded, in seconds.
const WARM_UP_S: f64 = 0.5;
/// Number of times that a latency's limit fits into the recorded time of a step.
const LIMITS: f64 = 3.0;
/// Fewest and most users of a step, each with a connection.
const USERS: (f64, f64) = (16.0, 4000.0);
/// Share of the due requests that must have an answer for the service to keep up.
const KEEPS_UP: f64 = 0.95;
/// Users and time of the closed load that gives a first idea of the rate.
const FIRST_USERS: u32 = 32;
const FIRST: Duration = Duration::from_millis(1500);
/// Longest time for the service to recover from a step, and the pause between two questions whether it has.
const RECOVERS_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// Lowest rate that is tried, in requests per second.
pub(crate) const LOWEST: f64 = 0.5;

/// What to search for, and by which load.
pub struct Wanted<'a> {
    /// Requests, with the answers that are right. Its arrivals, users and times are the search's.
    pub traffic: &'a Traffic,
    /// Spacing of the requests.
    pub spacing: Spacing,
    /// Conditions that must all be met; each [`Condition::is_goal`].
    pub conditions: &'a [Condition],
    /// Rate of the first step; `None` for half of what a short closed load reaches.
    pub first: Option<f64>,
    /// Number of users of every step; `None` for as many as the limit of the latency needs.
    pub users: Option<u32>,
    /// Shortest time of a step that is not recorded.
    pub warm_up: Duration,
    /// Longest time of the search.
    pub at_most: Duration,
    /// CPUs of the generator.
    pub cpus: &'a [usize],
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Observer of events, for the terminal.
    pub observer: &'a dyn Fn(Event<'_>),
}

/// One step: a load at one rate, and how the service took it.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// Requests per second that were sent, on average.
    pub rate: f64,
    /// Time of its middle since the search began, in seconds.
    pub at_s: f64,
    /// Recorded time in seconds.
    pub seconds: f64,
    /// Right answers per second.
    pub answered: f64,
    /// Median latency from the due moment.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Share of requests with a wrong answer or none.
    pub errors: f64,
    /// Number of answers with a wrong body, warm-up included.
    pub wrong_answers: u64,
    /// Mean number of requests under way, by Little's law: the rate of answers times their mean latency.
    pub in_flight: f64,
    /// Share of its CPU time that the generator used.
    pub generator_cpu: Option<f64>,
    /// Set if all conditions were met.
    pub holds: bool,
    /// The condition that was missed, with its value, or another reason.
    pub missed: Option<String>,
    /// Set if the generator was the limit, so that a missed condition says nothing of the service.
    pub is_generator_bound: bool,
}

/// Reason for the end of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Enough is known.
    Decided,
    /// The time was over.
    #[default]
    TimeOver,
    /// The generator can send no more.
    Generator,
    /// Not even the lowest rate holds.
    NothingHolds,
}

/// Result of a search.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Found {
    /// The capacity; `None` unless some step held and another failed.
    pub capacity: Option<Capacity>,
    /// Highest rate that held.
    pub held: Option<f64>,
    /// Reason for its end.
    pub ended: Ended,
    /// All steps, in their order.
    pub steps: Vec<Tried>,
    /// Sentences that a reader must know beside them.
    pub notes: Vec<String>,
}

impl Wanted<'_> {
    /// Searches for the capacity of the service at `target`, which runs, until it is known well enough, the time is over,
    /// or the generator is the limit.
    ///
    /// # Errors
    ///
    /// Returns an error if the load cannot be made at all, or on Ctrl-C.
    pub fn find(&self, target: &Target) -> Result<Found, GeneratorError> {
        let began = Instant::now();
        let idle = self.idle(target);
        let mut search = self.begin(target)?;
        let mut found = Found::default();
        self.recover(target, idle, &mut found.notes);
        loop {
            let at_s = began.elapsed().as_secs_f64();
            let rate = search.next(at_s);
            if rate < LOWEST {
                found.ended = Ended::NothingHolds;
                break;
            }
            if began.elapsed() + self.takes(rate) > self.at_most {
                break;
            }
            let tried = self.step(target, (rate, at_s), found.steps.len(), "")?;
            found.add(tried, &mut search);
            if search.is_decided() {
                found.ended = match search.capacity() {
                    Some(_) if !search.is_generator_bound() => Ended::Decided,
                    _ => Ended::Generator,
                };
                break;
            }
            self.recover(target, idle, &mut found.notes);
        }
        Ok(found)
    }

    /// Begins a search at the first rate.
    ///
    /// # Errors
    ///
    /// Returns an error if the load cannot be made at all, or on Ctrl-C.
    pub(crate) fn begin(&self, target: &Target) -> Result<Search, GeneratorError> {
        Ok(Search::from(match self.first {
            Some(rate) => rate,
            None => self.first_idea(target)?,
        }))
    }

    /// Returns the time that a step at `rate` takes.
    pub(crate) fn takes(&self, rate: f64) -> Duration {
        let traffic = self.at(rate, 0);
        load::ramp(&traffic) + traffic.warm_up + traffic.duration
    }

    /// Makes the step `number`, from 0, at `rate`. It begins `at_s` seconds after the search. `who` says of which service it
    /// is, if there are several.
    ///
    /// # Errors
    ///
    /// Returns an error if the load cannot be made at all, or on Ctrl-C.
    pub(crate) fn step(
        &self,
        target: &Target,
        (rate, at_s): (f64, f64),
        number: usize,
        who: &str,
    ) -> Result<Tried, GeneratorError> {
        let rounded = figures::count(rate.round());
        let label = format!("step {}{who}: {rounded} requests/s", number + 1);
        (self.observer)(Event::Begins(1, 1, &label));
        let outcome = self.load(target, &self.at(rate, number))?;
        let middle_s = at_s + self.takes(rate).as_secs_f64() / 2.0;
        let tried = self.judged(&outcome, rate, middle_s);
        (self.observer)(Event::Said(&format!("{label}: {}", tried.in_words())));
        Ok(tried)
    }

    /// Loads the service at `rate` for `seconds`, such as for a look into it.
    ///
    /// # Errors
    ///
    /// Returns an error if the load cannot be made at all, or on Ctrl-C.
    pub fn hold_at(
        &self,
        target: &Target,
        rate: f64,
        seconds: f64,
    ) -> Result<Tried, GeneratorError> {
        let mut traffic = self.at(rate, usize::MAX);
        traffic.duration = Duration::from_secs_f64(seconds);
        let outcome = self.load(target, &traffic)?;
        Ok(self.judged(&outcome, rate, 0.0))
    }

    fn load(&self, target: &Target, traffic: &Traffic) -> Result<TrafficOutcome, GeneratorError> {
        let progress = |now: Progress| (self.observer)(Event::Runs(now));
        let settings = Settings {
            cpus: self.cpus,
            interrupt: self.interrupt,
            progress: Some(&progress),
        };
        load::run(target.clone(), traffic, &settings)
    }

    /// Returns half of the rate that a few users without a pause reach.
    fn first_idea(&self, target: &Target) -> Result<f64, GeneratorError> {
        (self.observer)(Event::Begins(1, 1, "a first idea of the rate"));
        let traffic = Traffic {
            arrivals: Arrivals::Closed {
                think: Duration::ZERO,
            },
            users: self.users.unwrap_or(FIRST_USERS).min(FIRST_USERS),
            warm_up: self.warm_up.max(Duration::from_secs_f64(WARM_UP_S)),
            duration: FIRST,
            ..self.traffic.clone()
        };
        let outcome = self.load(target, &traffic)?;
        let rate = outcome.users.completed as f64 / FIRST.as_secs_f64();
        Ok((rate / 2.0).max(2.0 * LOWEST))
    }

    /// Returns the longest limit of a latency in seconds; one second without one.
    fn limit_s(&self) -> f64 {
        let mut longest: Option<f64> = None;
        for condition in self.conditions {
            if let Figure::Latency(_) = condition.figure() {
                longest = Some(longest.unwrap_or(0.0).max(condition.limit() / 1e3));
            }
        }
        longest.unwrap_or(1.0)
    }

    /// Returns the time of a step that is not recorded.
    fn warm_up(&self) -> Duration {
        let by_limit = self.limit_s().clamp(WARM_UP_S, RECORDED_S.0);
        self.warm_up.max(Duration::from_secs_f64(by_limit))
    }

    /// Returns the load of a step. It lasts until its percentiles have enough answers, and has as many users as requests
    /// are under way, by Little's law, if each takes twice the limit.
    fn at(&self, rate: f64, number: usize) -> Traffic {
        let limit = self.limit_s();
        let mut answers = answers_for(0.5);
        for condition in self.conditions {
            answers = f64::max(
                answers,
                match condition.figure() {
                    Figure::Latency(quantile) => answers_for(quantile),
                    Figure::Errors => 10.0 / condition.limit(),
                    Figure::Rate => 0.0,
                },
            );
        }
        let (shortest, longest) = RECORDED_S;
        let seconds = (answers / rate)
            .max(LIMITS * limit)
            .clamp(shortest, longest);
        let (fewest, most) = USERS;
        // Between these limits, so it fits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let users = (2.0 * rate * limit).clamp(fewest, most) as u32;
        Traffic {
            arrivals: Arrivals::Open {
                per_second: rate,
                spacing: self.spacing,
            },
            users: self.users.unwrap_or(users),
            warm_up: self.warm_up(),
            duration: Duration::from_secs_f64(seconds),
            seed: self.traffic.seed.wrapping_add(number as u64),
            ..self.traffic.clone()
        }
    }

    fn judged(&self, outcome: &TrafficOutcome, rate: f64, at_s: f64) -> Tried {
        let GroupOutcome {
            completed,
            unfinished,
            ..
        } = outcome.users;
        let seconds = outcome.seconds;
        let latencies = outcome.users.all();
        let at = |quantile: f64| latencies.as_ref().and_then(|all| all.at(quantile));
        let mean_ms = latencies.as_ref().map_or(0.0, |all| all.summary().mean_ms);
        // Faults of the warm-up count, too, and its requests do not.
        let warm_up_s = self.warm_up().as_secs_f64();
        let faults = outcome.users.faults() as f64 * seconds / (seconds + warm_up_s);
        let all = completed as f64 + unfinished as f64 + faults;
        let errors = if all > 0.0 { faults / all } else { 1.0 };
        let mut missed = None;
        for condition in self.conditions {
            let value = match condition.figure() {
                Figure::Errors => Some((errors, false)),
                Figure::Latency(quantile) if quantile < 1.0 - errors => {
                    // A request without a right answer is slower than any other.
                    at(quantile / (1.0 - errors)).map(|one| (one.ms, one.is_lower_bound))
                }
                Figure::Latency(_) | Figure::Rate => None,
            };
            let words = match value {
                Some((value, false)) if condition.is_met_by(value) => continue,
                Some((value, is_bound)) => format!(
                    "{} {}{}",
                    condition.figure(),
                    figures::over(is_bound),
                    condition.value(value)
                ),
                None => format!("{} of the requests failed", figures::percent(errors)),
            };
            missed.get_or_insert(words);
        }
        let due = rate * seconds;
        if completed as f64 + faults < KEEPS_UP * due - 2.0 * due.sqrt() {
            let words = format!(
                "{} of {} due requests were answered",
                figures::count(completed as f64),
                figures::count(due.round())
            );
            missed.get_or_insert(words);
        }
        let answered = completed as f64 / seconds;
        Tried {
            rate,
            at_s,
            seconds,
            answered,
            p50_ms: at(0.5).map(|one| one.ms),
            p95_ms: at(0.95).map(|one| one.ms),
            p99_ms: at(0.99).map(|one| one.ms),
            errors,
            wrong_answers: outcome.users.wrong_answers,
            in_flight: answered * mean_ms / 1e3,
            generator_cpu: outcome.generator.cpu_share,
            holds: missed.is_none(),
            missed,
            is_generator_bound: outcome.generator.is_bound(),
        }
    }

    /// Returns the time that one request takes of an idle service.
    fn idle(&self, target: &Target) -> Duration {
        let began = Instant::now();
        let _ = ask(
            target,
            &self.traffic.routes[0].requests[0],
            self.traffic.time_out,
        );
        began.elapsed()
    }

    /// Waits until a single request is as fast again as before the search, or nearly so: what a step has left behind must
    /// not burden the next.
    fn recover(&self, target: &Target, idle: Duration, notes: &mut Vec<String>) {
        let began = Instant::now();
        let enough = (idle * 2).max(Duration::from_secs_f64(self.limit_s() / 4.0));
        loop {
            std::thread::sleep(PAUSE);
            let asked = Instant::now();
            let request = &self.traffic.routes[0].requests[0];
            let answer = ask(target, request, RECOVERS_WITHIN);
            if answer.is_ok() && asked.elapsed() <= enough || self.interrupt.is_set() {
                return;
            }
            if began.elapsed() > RECOVERS_WITHIN {
                let slow = format!(
                    "after a step, the service took over {} s to become as fast as before.",
                    RECOVERS_WITHIN.as_secs()
                );
                if !notes.contains(&slow) {
                    notes.push(slow);
                }
                return;
            }
        }
    }
}

impl Found {
    /// Adds a step to what is known. One that fails because of the generator says nothing of the service.
    pub(crate) fn add(&mut self, tried: Tried, search: &mut Search) {
        let Tried {
            rate, at_s, holds, ..
        } = tried;
        if tried.is_generator_bound && !holds {
            search.cannot_reach(rate);
        } else {
            search.add(Step { rate, at_s, holds });
        }
        self.steps.push(tried);
        self.capacity = search.capacity();
        self.held = search.held();
    }
}

impl Tried {
    /// Describes how the service took it.
    pub fn in_words(&self) -> String {
        match (&self.missed, self.is_generator_bound) {
            (None, _) => "holds".to_owned(),
            (Some(missed), true) => format!("not counted, the generator was the limit; {missed}"),
            (Some(missed), false) => format!("fails, {missed}"),
        }
    }
}
