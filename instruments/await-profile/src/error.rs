//! Errors of taking and drawing a profile.

/// Reason why no profile was taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The profiler is taking another profile. It takes one at a time.
    #[error("this profiler is taking another profile")]
    Busy,
    /// The sampler's thread could not be started.
    #[error("could not start the sampler's thread")]
    Thread(#[source] std::io::Error),
    /// The sampler's thread panicked, which is a fault of this crate.
    #[error("the sampler panicked: please report this")]
    Sampler,
}

/// Reason why no flamegraph was drawn.
#[cfg(feature = "flamegraph")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlamegraphError {
    /// No sample fell on a request: nothing was in flight.
    #[error("no request was in flight while the profile was taken")]
    Empty,
    /// Inferno could not draw it.
    #[error("could not draw the flamegraph: {0}")]
    Draw(std::io::Error),
}
