//! Profiles of threads: their stacks, also of those that do not run. Linux only.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use diagnosis::Process;
use diagnosis::threads::{NamedFrame, Names, sample};

pub(crate) use diagnosis::threads::ThreadProfile;

use crate::error::EndpointError;
use crate::last::Last;
use crate::memory_left;
use crate::own_thread::OwnThread;
use crate::permit::{self, Permit};
use crate::stacks::cpu_names::{self, Mapping, Named};

static THREAD: OwnThread = OwnThread::new("thread-profiles");

/// Takes profiles and remembers the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadProfiler {
    pub(crate) last: Arc<Last<ThreadProfile>>,
}

impl ThreadProfiler {
    /// Looks at all threads for `duration`, once no other profile of them is being taken. Dropping the future ends it.
    pub(crate) async fn record_within(
        &self,
        patience: Duration,
        duration: Duration,
    ) -> Result<Arc<ThreadProfile>, EndpointError> {
        memory_left::is_enough()?;
        let permit = permit::threads_within(patience).await?;
        let sampling = THREAD.run(move |is_awaited| {
            let profile = sampled(duration, is_awaited, is_awaited);
            drop(permit);
            profile
        });
        match sampling.await? {
            Some(profile) => Ok(self.last.keep(profile)),
            None => Err(EndpointError::failed("nobody waits for it")),
        }
    }
}

/// Looks at all threads but the calling one, until `duration` is over or `lasts` returns false. The caller has the permit.
///
/// # Errors
///
/// Returns an error if there is too little memory for names.
pub(crate) fn take(
    _: &Permit,
    duration: Duration,
    lasts: &dyn Fn() -> bool,
) -> Result<ThreadProfile, EndpointError> {
    memory_left::is_enough()?;
    match sampled(duration, lasts, &|| true) {
        Some(profile) => Ok(profile),
        None => Err(EndpointError::failed("nobody waits for it")),
    }
}

/// Samples until `duration` is over or `lasts` returns false, and looks the names up if the profile is still awaited.
fn sampled(
    duration: Duration,
    lasts: &dyn Fn() -> bool,
    is_awaited: &dyn Fn() -> bool,
) -> Option<ThreadProfile> {
    let samples = sample(Process::this(), duration, lasts);
    let profile = is_awaited().then(|| {
        let mut names = OwnNames(Mapping::all());
        ThreadProfile::new(samples, duration, &mut names)
    });
    await_profile::symbols::forget();
    profile
}

impl Named for NamedFrame {
    fn line(&self) -> u32 {
        self.line
    }
}

/// Names of this process's functions.
struct OwnNames(Vec<Mapping>);

impl Names for OwnNames {
    fn functions(&mut self, address: usize) -> Vec<NamedFrame> {
        let mut named = Vec::new();
        for (function, line) in cpu_names::functions(address) {
            named.push(NamedFrame {
                function: function.name,
                file: function.file,
                line,
                is_foreign: function.is_foreign,
            });
        }
        named
    }

    fn nameless(&self, address: usize) -> String {
        cpu_names::nameless(address, &self.0)
    }

    fn note(&self, known: &HashMap<usize, Vec<NamedFrame>>) -> Option<String> {
        cpu_names::note(known, &self.0)
    }

    fn has_begun_requests(&self, tid: i32) -> bool {
        await_profile::has_begun_requests(tid)
    }
}
