//! What threads do and where they are blocked: their stacks, also of those that do not run. Linux only.

mod findings;
mod profile;
mod profiler;
mod sampler;
mod stops;
mod unwinder;

pub(crate) use profile::ThreadProfile;
pub(crate) use profiler::ThreadProfiler;
pub(crate) use unwinder::Unwinder;
