//! Handle that a service keeps.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::counting::{Counting, WaitCounts};
use crate::error::ProfileError;
use crate::label::Label;
use crate::latency::RouteLatency;
use crate::lock::lock;
use crate::options::ProfileOptions;
use crate::probe::Probe;
use crate::profile::Profile;
use crate::sampler::collect;
use crate::session::Purpose;
use crate::shared::{Permit, Shared};
use crate::symbols;
use crate::tracked::Tracked;
use crate::watched;

/// Takes await profiles of the futures that it wraps.
///
/// This is a handle: its clones belong to the same profiler. A service usually has one. The
/// registry takes some kilobytes, which are freed with the last handle, layer and
/// wrapped future, once no profile is being taken.
///
/// # What it costs
///
/// | state | every request pays for |
/// | --- | --- |
/// | off, as [`new`](Self::new) leaves it | reading one flag for each poll |
/// | [armed](Self::arm) | also entering and leaving the registry |
/// | while [`profile`](Self::profile) runs | also one atomic operation for each wake, and another reference to count; the chosen ones, a capture of the call stack |
///
/// COST.md has the figures; `examples/instructions.rs` counts instructions.
///
/// # Why arm it
///
/// Only requests in the registry can be sampled, and a profiler that is off registers none. A
/// request that began before the profile is registered when it is polled again. So if every
/// request of a service hangs, the profile of an unarmed profiler shows nothing. An armed profiler
/// registers all requests.
#[derive(Clone)]
pub struct AwaitProfiler {
    pub(crate) shared: Arc<Shared>,
}

impl AwaitProfiler {
    /// Creates a profiler that is off.
    #[must_use]
    pub fn new() -> Self {
        let shared = Arc::new(Shared::new());
        AwaitProfiler { shared }
    }

    /// Arms this profiler and returns it: a profile that is started later sees requests that begin
    /// from now on.
    #[must_use = "armed() returns the profiler; arm() changes it in place"]
    pub fn armed(self) -> Self {
        self.arm();
        self
    }

    /// Registers requests that begin from now on, at the cost of about a microsecond each (COST.md).
    pub fn arm(&self) {
        watched::armed(&self.shared);
        self.shared.set_armed(true);
    }

    /// Registers no further requests, except while a profile is taken. A poll of an unregistered request
    /// then reads one flag, and nothing else.
    pub fn disarm(&self) {
        self.shared.set_armed(false);
    }

    /// Returns the number of registered requests that were answered 101, so that their connections go on as another
    /// protocol, such as `WebSockets`. Profiles do not see what those connections wait for.
    pub fn upgraded(&self) -> u64 {
        self.shared.registry.upgraded() as u64
    }

    /// Returns the number of registered requests (and other wrapped futures) in flight.
    pub fn in_flight(&self) -> usize {
        self.shared.registry.len()
    }

    /// Returns the latencies of registered requests over the last minute, the route with the most timed requests first.
    /// Beyond 32 routes, the others are added up as `(other routes)`. A profiler that is off registers none.
    pub fn latencies(&self) -> Vec<RouteLatency> {
        self.shared.registry.latencies()
    }

    /// Returns the number of registered requests of each route that have been in flight for longer than `time`, of those
    /// that are timed for [`latencies`](Self::latencies). A request that hangs is among them, and has no latency yet.
    pub fn in_flight_longer_than(&self, time: Duration) -> HashMap<Arc<str>, u64> {
        self.shared.registry.in_flight_longer_than(time)
    }

    /// Counts, from now on, the seconds that requests of each route spend in each kind of wait, for metrics. A thread of
    /// its own takes ten samples a second, until the last clone of the result is dropped. Profiles can be taken at the
    /// same time.
    ///
    /// The seconds are an estimate. In `n` independent samples, a share `p` of the time of all requests in flight has a
    /// relative standard error of `sqrt((1 - p) / (p n))`: for a tenth of the time, 6 % after five minutes and 2 % after an
    /// hour. It is more if the number of requests in flight changes much. New places count once their names are known, ten
    /// seconds later or more.
    ///
    /// # Errors
    ///
    /// Returns an error if this profiler counts waits already, or if no thread can be started.
    pub fn count_waits(&self) -> Result<WaitCounts, ProfileError> {
        self.count_waits_holding(|| Some(()))
    }

    /// Counts waits as [`count_waits`](Self::count_waits) does. Calls `guard` before it looks names up, and drops the
    /// result after that: see [`profile_holding`](Self::profile_holding). If `guard` returns None, names are looked up
    /// later.
    ///
    /// # Errors
    ///
    /// Returns an error if this profiler counts waits already, or if no thread can be started.
    pub fn count_waits_holding<G>(
        &self,
        guard: impl FnMut() -> Option<G> + Send + 'static,
    ) -> Result<WaitCounts, ProfileError> {
        let permit = Permit::acquire(&self.shared, Purpose::Counts)?;
        let (counting, counts) = Counting::start(&permit, fastrand::Rng::new());
        std::thread::Builder::new()
            .name("await-counts".into())
            .spawn(move || counting.run(&permit, guard))
            .map_err(ProfileError::Thread)?;
        Ok(counts)
    }

    /// Wraps a future of any kind; `route` is the outermost frame of its stacks.
    ///
    /// Inside a future that is wrapped already, this has no effect: the outermost wrapper counts.
    pub fn wrap<F: Future>(&self, route: impl Into<Label>, future: F) -> Tracked<F> {
        // This fails, and is not needed, while the thread ends.
        let _ = BEGINNER.try_with(|_| ());
        Tracked::new(Probe::new(self.shared.clone(), route.into()), future)
    }

    /// Takes a profile on a thread of its own, so you may await it on any executor, even a stalled
    /// one. Dropping the future ends the profile early.
    ///
    /// # Errors
    ///
    /// Returns an error if another profile is being taken, or if no thread can be started.
    pub async fn profile(&self, options: ProfileOptions) -> Result<Profile, ProfileError> {
        self.profile_holding(options, ()).await
    }

    /// Takes a profile as [`profile`](Self::profile) does, and keeps `guard` until the profile's thread is
    /// done. That may be after this future was dropped.
    ///
    /// Names are looked up under a lock of the process. An allocator that records its callers (dhat)
    /// takes the same lock under one of its own, so the two can deadlock. If your service also takes
    /// profiles of other kinds, pass the permit that allows one profile at a time as `guard`.
    ///
    /// # Errors
    ///
    /// Returns an error if another profile is being taken, or if no thread can be started.
    pub async fn profile_holding(
        &self,
        options: ProfileOptions,
        guard: impl Send + 'static,
    ) -> Result<Profile, ProfileError> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        let permit = Permit::acquire(&self.shared, Purpose::Profile)?;
        std::thread::Builder::new()
            .name("await-profile".into())
            .spawn(move || {
                let profile = take(&permit, &options, &|| sender.is_canceled());
                drop((permit, guard));
                let _ = sender.send(profile);
            })
            .map_err(ProfileError::Thread)?;
        receiver.await.map_err(|_| ProfileError::Sampler)
    }

    /// Takes a profile as [`profile`](Self::profile) does, but on the calling thread, which it blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if another profile is being taken.
    pub fn profile_blocking(&self, options: &ProfileOptions) -> Result<Profile, ProfileError> {
        let permit = Permit::acquire(&self.shared, Purpose::Profile)?;
        Ok(take(&permit, options, &|| false))
    }
}

/// Takes a profile, from switching on to resolving names.
fn take(permit: &Permit, options: &ProfileOptions, cancelled: &dyn Fn() -> bool) -> Profile {
    let collected = collect(permit, options, cancelled);
    let profile = Profile::new(collected, options, &mut lock(&permit.shared.symbols));
    symbols::forget();
    profile
}

impl Default for AwaitProfiler {
    fn default() -> Self {
        AwaitProfiler::new()
    }
}

impl fmt::Debug for AwaitProfiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.shared.state() {
            state if state.is_profiling() => "profiling",
            state if state.is_tracking() => "counting",
            state if state.is_off() => "off",
            _ => "armed",
        };
        f.debug_struct("AwaitProfiler")
            .field("mode", &mode)
            .field("in_flight", &self.in_flight())
            .finish()
    }
}

/// Returns whether a request was wrapped on this thread, given by its number in `/proc`. Always false outside of Linux.
pub fn has_begun_requests(tid: i32) -> bool {
    lock(&BEGINNERS).contains(&tid)
}

/// Threads that have wrapped a request and not ended.
static BEGINNERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

thread_local! {
    /// Entry of this thread in `BEGINNERS`, made when it wraps its first request.
    static BEGINNER: Beginner = Beginner::of_this_thread();
}

/// A thread that is in [`BEGINNERS`] while it lives. It has to leave, since the system reuses its number.
struct Beginner(Option<i32>);

impl Beginner {
    fn of_this_thread() -> Self {
        let tid = this_thread();
        if let Some(tid) = tid {
            lock(&BEGINNERS).insert(tid);
        }
        Beginner(tid)
    }
}

/// Returns the number of this thread in `/proc`. None outside of Linux.
fn this_thread() -> Option<i32> {
    // Miri has no such file.
    if cfg!(miri) {
        return None;
    }
    let thread = std::fs::read_link("/proc/thread-self").ok()?;
    thread.file_name()?.to_str()?.parse().ok()
}

impl Drop for Beginner {
    fn drop(&mut self) {
        if let Some(tid) = self.0 {
            lock(&BEGINNERS).remove(&tid);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_wraps_requests_is_known_until_it_ends() {
        let tid = || this_thread().expect("Linux");
        let thread = std::thread::spawn(move || {
            let before = has_begun_requests(tid());
            let _request = AwaitProfiler::new().wrap("a request", async {});
            (tid(), before, has_begun_requests(tid()))
        });
        let (tid, before, after) = thread.join().expect("no panic");
        assert_eq!((before, after), (false, true));
        assert!(!has_begun_requests(tid), "it has ended");
    }
}
