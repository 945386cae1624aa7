//! A named load: users and times.

use std::{fmt::Write as _, time::Duration};

use serde::{Deserialize, Serialize};

use crate::measurement::checked;
use engine::figures;

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
