//! How a profile is to be taken.

use std::time::Duration;

/// How to take a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// How long to sample. Ten seconds unless set. A sample takes some hundred bytes until
    /// the profile is dropped, and one of 500,000 samples ends: see the README, "What it costs".
    pub duration: Duration,
    /// The budget: samples per second, on average.
    /// [`DEFAULT_RATE`](Self::DEFAULT_RATE) unless set.
    pub captures_per_second: u32,
    /// The crates to take for the reader's own. Unless set, own code is what was
    /// compiled from outside cargo's registry and the toolchain.
    pub own_crates: Option<Vec<String>>,
    /// Paths of types or modules that hold a timer only to give up what they wait for, as
    /// `Frames::All` shows them. Those of tokio, tower, reqwest and tonic are known.
    pub deadlines: Vec<String>,
}

impl ProfileOptions {
    /// Two thousand samples in ten seconds. If they are independent, the 95 % interval of a
    /// share is at most 2.2 percentage points to either side. Where many requests wait for
    /// one event, or for longer than the profile, they are not, and it is wider: each share has its own
    /// ([`Interval`](crate::Interval)).
    pub const DEFAULT_RATE: u32 = 200;

    /// The default options with this duration.
    pub fn lasting(duration: Duration) -> Self {
        ProfileOptions {
            duration,
            ..ProfileOptions::default()
        }
    }

    /// Sets the budget in samples per second, at least one.
    #[must_use]
    pub fn captures_per_second(mut self, rate: u32) -> Self {
        self.captures_per_second = rate.max(1);
        self
    }

    /// Names the crates whose frames are the reader's own, as they are spelled in
    /// paths (`my_service`).
    #[must_use]
    pub fn own_crates(mut self, crates: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.own_crates = Some(crates.into_iter().map(Into::into).collect());
        self
    }

    /// Names types or modules that hold a timer only to give up what they wait for
    /// (`my_service::Deadline`). Their timer is left out, like that of `tokio::time::timeout`,
    /// unless nothing else is waited for.
    #[must_use]
    pub fn deadlines(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.deadlines = paths.into_iter().map(Into::into).collect();
        self
    }
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions {
            duration: Duration::from_secs(10),
            captures_per_second: Self::DEFAULT_RATE,
            own_crates: None,
            deadlines: Vec::new(),
        }
    }
}
