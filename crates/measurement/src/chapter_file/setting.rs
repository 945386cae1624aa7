//! A named load: users and times.

use std::{fmt::Write as _, time::Duration};

use serde::{Deserialize, Serialize};

use crate::figures;

/// Users and times: with the chapter's [`crate::load::Exchange`], a [`crate::load::Load`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Simultaneous users.
    #[serde(default)]
    pub users: u32,
    /// Users for each processor of the machine, where their number depends on it; `users` then
    /// follows from it when the file is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_per_processor: Option<u32>,
    /// Pause between an answer and the user's next request, in seconds.
    #[serde(default)]
    pub think_s: f64,
    /// Share (0 to 1) of the requests that are the chapter's `[write]`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub write_share: f64,
    /// Requests a second of the chapter's `[probe]` beside the load, in an open loop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probe_per_second: f64,
    /// Further arguments for the server, such as `--tls`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Whether a user keeps its connection.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// Loaded but not recorded, in seconds.
    pub warm_up_s: f64,
    /// Recorded, in seconds.
    pub duration_s: f64,
    /// A request without an answer for so many seconds is an error. The
    /// problem's users wait for `users` calls one after another: allow that.
    #[serde(default = "minute")]
    pub time_out_s: f64,
}

fn yes() -> bool {
    true
}

// serde hands a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn minute() -> f64 {
    60.0
}

impl Setting {
    /// Fixes the number of users on a machine with so many processors.
    pub(super) fn fit_to(&mut self, processors: u32) {
        if let Some(each) = self.users_per_processor {
            self.users = each.saturating_mul(processors);
        }
    }

    /// The pause between an answer and the user's next request.
    pub fn think(&self) -> Duration {
        Duration::from_secs_f64(self.think_s)
    }

    /// Warm-up and recorded time together, in seconds.
    pub fn whole_s(&self) -> f64 {
        self.warm_up_s + self.duration_s
    }

    /// The setting in a few words: `1,000 users, 0.5 s pause, 5 % writes`.
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
        if self.probe_per_second > 0.0 {
            let rate = figures::count(self.probe_per_second);
            let _ = write!(words, ", {rate} probes a second");
        }
        if !self.arguments.is_empty() {
            let _ = write!(words, ", `{}`", self.arguments.join(" "));
        }
        words
    }
}
