//! A named load: users and times.

use std::{fmt::Write as _, time::Duration};

use serde::{Deserialize, Serialize};
use statistics::figures;

use crate::measurement::checked;
use engine::traffic::{Arrivals, Clients, Pause, Phase, Retries, Spacing};

/// Users and times: with the chapter's [`crate::measurement::load::Exchange`], a [`Traffic`](engine::traffic::Traffic).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Simultaneous users.
    #[serde(default)]
    pub users: u32,
    /// Users for each CPU of the machine, where their number depends on it; `users` then
    /// follows from it when the file is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_per_cpu: Option<u32>,
    /// Pause between an answer and the user's next request, in seconds.
    #[serde(default, deserialize_with = "checked::seconds")]
    pub think_s: f64,
    /// Share (0 to 1) of the requests that are the chapter's `[write]`.
    #[serde(
        default,
        deserialize_with = "checked::share_of_requests",
        skip_serializing_if = "is_zero"
    )]
    pub write_share: f64,
    /// Requests per second of the chapter's `[bystander]` beside the load, in an open loop.
    #[serde(
        default,
        deserialize_with = "checked::rate",
        skip_serializing_if = "is_zero"
    )]
    pub bystanders_per_second: f64,
    /// Requests per second of an open loop, which come at random whatever the answers do. Without it, users ask again
    /// after their pause.
    #[serde(
        default,
        deserialize_with = "checked::rate",
        skip_serializing_if = "is_zero"
    )]
    pub per_second: f64,
    /// Parts of an open loop with rates of their own, as shares of `per_second`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Time in seconds after which a client closes its connection and is gone. It is no error then, and neither is an
    /// answer 503.
    #[serde(
        default,
        deserialize_with = "checked::some_seconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub give_up_after_s: Option<f64>,
    /// Rule by which clients that give up or are refused ask again; they do not without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<RetryRule>,
    /// Further arguments for the server, such as `--tls`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// `true` if a user keeps its connection.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// Time under load before the recorded span, in seconds.
    #[serde(deserialize_with = "checked::seconds")]
    pub warm_up_s: f64,
    /// Recorded time, in seconds.
    #[serde(deserialize_with = "checked::some_seconds")]
    pub duration_s: f64,
    /// Longest time to wait for an answer, in seconds; a request that takes longer is an error. The problem's
    /// users wait for `users` calls one after another, so allow for that.
    #[serde(default = "minute", deserialize_with = "checked::some_seconds")]
    pub time_out_s: f64,
}

/// Retries of clients that were not answered in time: a table in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRule {
    /// Most attempts at one request, the first included.
    #[serde(deserialize_with = "checked::some")]
    pub attempts: u32,
    /// Longest pause before the second attempt in seconds, doubled for each further one: a client draws its own between
    /// zero and that. Without it the next attempt follows at once.
    #[serde(
        default,
        deserialize_with = "checked::some_seconds_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub backoff_s: Option<f64>,
    /// Most retries of all clients together, as a share of first attempts.
    #[serde(
        default,
        deserialize_with = "checked::positive_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub budget: Option<f64>,
}

impl From<RetryRule> for Retries {
    fn from(rule: RetryRule) -> Self {
        Self {
            attempts: rule.attempts,
            pause: match rule.backoff_s {
                Some(first_s) => Pause::Backoff {
                    first: Duration::from_secs_f64(first_s),
                    longest: LONGEST_PAUSE,
                },
                None => Pause::None,
            },
            budget: rule.budget,
        }
    }
}

/// Longest pause before an attempt, however many came before.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

fn yes() -> bool {
    true
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn minute() -> f64 {
    60.0
}

impl Scenario {
    /// Sets the number of users for a machine with `cpus` CPUs.
    pub(super) fn fit_to(&mut self, cpus: u32) {
        if let Some(each) = self.users_per_cpu {
            self.users = each.saturating_mul(cpus);
        }
    }

    /// Returns the pause between an answer and the user's next request.
    pub fn think(&self) -> Duration {
        Duration::from_secs_f64(self.think_s)
    }

    /// Returns the first contradiction between two keys, with what to do.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let is_open = self.per_second > 0.0;
        let is_phase =
            |phase: &Phase| phase.share > 0.0 && phase.seconds > 0.0 && phase.seconds <= 86_400.0;
        [
            (
                !self.phases.is_empty() && !is_open,
                "phases: they are shares of a rate; say `per_second`, too",
            ),
            (
                !self.phases.iter().all(is_phase),
                "phases: a `share` and `seconds` are above 0, and `seconds` at most 86400",
            ),
            (
                is_open && self.think_s > 0.0,
                "think_s: requests come at `per_second`; leave one of the two out",
            ),
            (
                self.retries.is_some() && self.give_up_after_s.is_none(),
                "retries: clients ask again who gave up; say `give_up_after_s`, too",
            ),
            (
                self.give_up_after_s
                    .is_some_and(|seconds| seconds >= self.time_out_s),
                "give_up_after_s: clients give up before `time_out_s`",
            ),
        ]
        .into_iter()
        .find_map(|(is_so, what)| is_so.then_some(what))
    }

    /// Returns the way in which requests come: on a schedule, or from users who pause.
    pub fn arrivals(&self) -> Arrivals {
        if self.per_second > 0.0 {
            Arrivals::Open {
                per_second: self.per_second,
                spacing: Spacing::Poisson,
            }
        } else {
            Arrivals::Closed {
                think: self.think(),
            }
        }
    }

    /// Returns the behavior of clients that give up, if they do.
    pub fn clients(&self) -> Option<Clients> {
        self.give_up_after_s.map(|seconds| Clients {
            give_up_after: Duration::from_secs_f64(seconds),
            retries: self.retries.map_or(Retries::NONE, Retries::from),
        })
    }

    /// Returns warm-up and recorded time together, in seconds.
    pub fn whole_s(&self) -> f64 {
        self.warm_up_s + self.duration_s
    }

    /// Formats the scenario in a few words: `1,000 users, 0.5 s pause, 5 % writes`.
    pub fn in_words(&self) -> String {
        let mut words = figures::things(self.users.into(), "user");
        if self.think_s > 0.0 {
            // Writing to a String cannot fail.
            let _ = write!(words, ", {} s pause", figures::count(self.think_s));
        }
        if self.per_second > 0.0 {
            let rate = figures::count(self.per_second);
            let _ = write!(words, ", {rate} requests a second");
        }
        for Phase { share, seconds } in &self.phases {
            let (rate, seconds) = (figures::percent(*share), figures::count(*seconds));
            let _ = write!(words, ", {rate} of this rate for {seconds} s");
        }
        if let Some(seconds) = self.give_up_after_s {
            let waits = figures::milliseconds(1e3 * seconds);
            let _ = write!(words, ", users give up after {waits}");
        }
        if let Some(rule) = &self.retries {
            let _ = write!(words, ", {} attempts", rule.attempts);
            if rule.backoff_s.is_some() {
                words.push_str(" with backoff");
            }
            if let Some(budget) = rule.budget {
                let _ = write!(words, " within a budget of {}", figures::percent(budget));
            }
        }
        if self.write_share > 0.0 {
            let share = figures::count(self.write_share * 100.0);
            let _ = write!(words, ", {share} % writes");
        }
        if self.bystanders_per_second > 0.0 {
            let rate = figures::count(self.bystanders_per_second);
            let _ = write!(words, ", {rate} bystanders a second");
        }
        if !self.arguments.is_empty() {
            let _ = write!(words, ", `{}`", self.arguments.join(" "));
        }
        words
    }
}
