//! Requests that wait in a known place, profiled on both runtimes.

use std::pin::Pin;
use std::time::Duration;

use await_profile::{AwaitProfiler, Frames, Profile, ProfileOptions};
use tokio::runtime::{Builder, Runtime};

const REQUESTS: usize = 20;

fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_all().build().unwrap(),
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    ]
}

/// Profiles requests that all wait where `request` leaves them, for ever.
pub(crate) fn profile_of<F>(request: impl Fn() -> F) -> Vec<Profile>
where
    F: Future<Output = ()> + Send + 'static,
{
    profile_of_prepared(async || (), |()| request())
}

/// The same, of requests that are given what `prepare` makes. What that waits for is no
/// part of them: on a busy machine it takes a good part of a profile.
pub(crate) fn profile_of_prepared<T, F>(
    prepare: impl AsyncFn() -> T,
    request: impl Fn(T) -> F,
) -> Vec<Profile>
where
    F: Future<Output = ()> + Send + 'static,
{
    runtimes()
        .into_iter()
        .map(|runtime| {
            let profiler = AwaitProfiler::new().armed();
            // In boxes, so that the runtime is compiled once for all requests.
            let profile: Pin<Box<dyn Future<Output = Profile>>> = Box::pin(async {
                for _ in 0..REQUESTS {
                    let request = profiler.wrap("GET /", request(prepare().await));
                    let request: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(request);
                    tokio::spawn(request);
                }
                while profiler.in_flight() < REQUESTS {
                    tokio::task::yield_now().await;
                }
                profiler.profile(brief()).await.unwrap()
            });
            runtime.block_on(profile)
        })
        .collect()
}

fn brief() -> ProfileOptions {
    ProfileOptions::lasting(Duration::from_millis(100)).captures_per_second(1000)
}

/// Asserts that every sample that was a wait, was one in `handler`, at a line, for
/// `primitive`. On a busy machine some requests are still on their way there.
#[track_caller]
pub(crate) fn assert_waits(profiles: &[Profile], handler: &str, primitive: &str) {
    // The test's crate, which is called as its file.
    let file = module_path!().split("::").next().unwrap();
    let handler = format!("{file}::{handler} (tests/{file}.rs:");
    for profile in profiles {
        let samples = profile.summary().samples;
        assert!(samples.waiting > 10, "{samples:?}");
        let shares = profile.shares(Frames::Own);
        let places = shares
            .iter()
            .filter(|share| !share.frames[1].starts_with('('));
        let waiting: f64 = places.clone().map(|share| share.share).sum();
        let right: f64 = places
            .filter(|share| {
                share.frames[0] == "GET /"
                    && share.frames[1].starts_with(&handler)
                    && share.frames.last().is_some_and(|leaf| leaf == primitive)
            })
            .map(|share| share.share)
            .sum();
        assert!(
            right > 0.95 * waiting,
            "{right} of {waiting} in {primitive}:\n{}\n{}",
            profile.folded(Frames::Own),
            profile.folded(Frames::All)
        );
    }
}
