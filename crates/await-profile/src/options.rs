//! How a profile is to be taken.

use std::time::Duration;

/// How to take a profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// How long to sample. Ten seconds unless set.
    pub duration: Duration,
    /// The budget: samples per second, on average.
    /// [`DEFAULT_RATE`](Self::DEFAULT_RATE) unless set.
    pub captures_per_second: u32,
    /// The crates to take for the reader's own. Unless set, own code is what was
    /// compiled from outside cargo's registry and the toolchain.
    pub own_crates: Option<Vec<String>>,
}

impl ProfileOptions {
    /// Two thousand samples in ten seconds: the 95 % interval of a share is then at most
    /// two percentage points to either side, for well under one per cent of a core.
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
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions {
            duration: Duration::from_secs(10),
            captures_per_second: Self::DEFAULT_RATE,
            own_crates: None,
        }
    }
}
