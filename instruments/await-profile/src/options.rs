//! Options for taking a profile.

use std::time::Duration;

use crate::percentile::Percentile;

/// Options for taking a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// Duration of sampling, by default ten seconds. A sample takes some hundred bytes until the
    /// profile is dropped. A profile ends at 500,000 samples (COST.md).
    pub duration: Duration,
    /// Budget: samples per second, on average. By default [`DEFAULT_RATE`](Self::DEFAULT_RATE).
    pub captures_per_second: u32,
    /// Crates to treat as the reader's own. By default, own code is everything that was compiled
    /// from outside cargo's registry, git dependencies and the toolchain.
    pub own_crates: Option<Vec<String>>,
    /// Paths, as `Frames::All` shows them, of types or modules that hold a timer only to limit another wait.
    /// The profile knows those of tokio, tower, reqwest and tonic.
    pub deadlines: Vec<String>,
    /// Percentile above which a route's requests are its tail. None for an ordinary profile.
    pub tail: Option<Percentile>,
}

impl ProfileOptions {
    /// Two thousand samples in ten seconds. If samples are independent, the 95 % interval of a share
    /// is at most 2.2 percentage points to either side. They are not independent if many requests wait
    /// for one event, or for longer than the profile. The interval is then wider: each share has its
    /// own ([`Interval`](crate::Interval)).
    pub const DEFAULT_RATE: u32 = 200;

    /// Returns the default options with this duration.
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

    /// Names types or modules that hold a timer only to limit another wait (`my_service::Deadline`).
    /// A profile leaves out their timer, like that of `tokio::time::timeout`, unless the request waits
    /// for nothing else.
    #[must_use]
    pub fn deadlines(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.deadlines = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Takes a tail profile, which knows the time of every request. It sets the waits of a route's slowest requests beside
    /// those of the rest: see [`Profile::tail`](crate::Profile::tail).
    #[must_use]
    pub fn tail(mut self, percentile: Percentile) -> Self {
        self.tail = Some(percentile);
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
            tail: None,
        }
    }
}
