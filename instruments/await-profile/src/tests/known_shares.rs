//! Shares, compared with waits of known length.
//!
//! Requests wait 30 ms for a lock, 50 ms for a timer and 20 ms for a channel, over
//! and over. Nothing depends on the machine: the test moves the clock, and the
//! sampler's choices come from a seed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::{Mutex, oneshot};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::{advance, sleep, timeout};

use super::{permit, sampler};
use crate::lock::lock;
use crate::{AwaitProfiler, Frames, Profile, ProfileOptions, inherit, path};

const RUNS: u64 = 4;
const REQUESTS: u64 = 100;
/// Number of samples of a run. A share of one half then has a standard deviation of 0.5 points, so
/// two points are four standard deviations. Over four runs and three shares, a correct sampler
/// fails once in more than a thousand sets of seeds. The seeds are fixed.
const SAMPLES: usize = 10_000;

fn after(millis: u64, then: impl FnOnce() + 'static) {
    spawn_local(async move {
        sleep(Duration::from_millis(millis)).await;
        then();
    });
}

async fn request(start: u64) {
    sleep(Duration::from_millis(start)).await;
    let lock = Arc::new(Mutex::new(()));
    loop {
        let guard = lock.clone().lock_owned().await;
        after(30, || drop(guard));
        drop(lock.lock().await);

        sleep(Duration::from_millis(50)).await;

        let (sender, receiver) = oneshot::channel();
        after(20, || sender.send(()).unwrap_or_default());
        receiver.await.unwrap_or_default();
    }
}

/// Profiles the requests that `spawn` spawns, with a sample each millisecond.
fn profile(seed: u64, spawn: impl FnOnce(&AwaitProfiler, &LocalSet)) -> Profile {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let profiler = AwaitProfiler::new().armed();
    let requests = LocalSet::new();
    spawn(&profiler, &requests);
    let run = requests.run_until(async {
        let permit = permit(&profiler);
        // Now all requests are past their first sleep.
        for _ in 0..2 * REQUESTS {
            step().await;
        }
        let mut sampler = sampler(&permit, seed);
        // Requests that finish before the profile begins must not count.
        for _ in 0..REQUESTS {
            step().await;
        }
        sampler.begin();
        for _ in 0..SAMPLES {
            sampler.sample_once();
            step().await;
            sampler.gather();
        }
        sampler.end(Duration::from_millis(SAMPLES as u64));
        let symbols = &mut lock(&profiler.shared.symbols);
        Profile::new(sampler.finish(), &ProfileOptions::default(), symbols)
    });
    runtime.block_on(run)
}

/// Lets requests answer, moves the clock by a millisecond, and polls the tasks that it woke.
async fn step() {
    poll_all().await;
    advance(Duration::from_millis(1)).await;
    poll_all().await;
}

async fn poll_all() {
    for _ in 0..4 {
        yield_now().await;
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn shares_are_within_two_points_in_every_run() {
    let mut largest: f64 = 0.0;
    for seed in 0..RUNS {
        let profile = profile(seed, |profiler, requests| {
            for number in 0..REQUESTS {
                requests.spawn_local(profiler.wrap("GET /", request(number)));
            }
        });
        let samples = profile.summary().samples;
        assert_eq!(samples.waiting, SAMPLES as u64, "{samples:?}");
        for (primitive, known) in [
            ("tokio::sync::Mutex", 0.3),
            ("tokio::time::Sleep", 0.5),
            ("tokio::sync::oneshot", 0.2),
        ] {
            let shares = profile.shares(Frames::Own);
            let share: f64 = shares
                .iter()
                .filter(|share| share.frames[0].to_string().starts_with(primitive))
                .map(|share| share.share)
                .sum();
            let error = share - known;
            largest = largest.max(error.abs());
            assert!(
                error.abs() < 0.02,
                "seed {seed}: {primitive} {share}, not {known}\n{}",
                profile.folded(Frames::All)
            );
        }
    }
    println!("largest error: {:.2} points", largest * 100.0);
}

async fn nap(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

/// Waits for a message from another task.
async fn hears(millis: u64) {
    let (sender, receiver) = oneshot::channel();
    after(millis, || sender.send(()).unwrap_or_default());
    receiver.await.unwrap_or_default();
}

async fn children() {
    nap(70).await;
    spawn_local(inherit(hears(30))).await.unwrap_or_default();
}

async fn joined() {
    tokio::join!(nap(60), hears(30));
}

async fn selected() {
    tokio::select! {
        () = nap(90) => {}
        () = hears(40) => {}
    }
    nap(60).await;
}

async fn in_time() {
    timeout(Duration::from_secs(9), hears(25))
        .await
        .unwrap_or_default();
    nap(75).await;
}

async fn locks(lock: Arc<Mutex<()>>) {
    drop(lock.lock().await);
}

/// Returns the share of a route's own requests whose stack contains the text.
fn share_of(profile: &Profile, route: &str, text: &str) -> f64 {
    let shares = profile.shares(Frames::Own);
    let sum = |text: &str| -> f64 {
        let of_route = shares.iter().filter(|share| share.route == route);
        let with_text = of_route.filter(|share| path(&share.frames).contains(text));
        with_text.map(|share| share.share).sum()
    };
    sum(text) / sum("")
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn whatever_a_request_awaits_has_its_share() {
    let profile = profile(1, |profiler, requests| {
        let held = Arc::new(Mutex::new(()));
        let guard = held.clone().try_lock_owned();
        for number in 0..REQUESTS {
            let (profiler, held) = (profiler.clone(), held.clone());
            requests.spawn_local(async move {
                nap(number).await;
                loop {
                    match number % 5 {
                        0 => profiler.wrap("children", children()).await,
                        1 => profiler.wrap("joined", joined()).await,
                        2 => profiler.wrap("selected", selected()).await,
                        3 => profiler.wrap("in time", in_time()).await,
                        _ => {
                            let request = profiler.wrap("cancelled", locks(held.clone()));
                            timeout(Duration::from_millis(40), request)
                                .await
                                .unwrap_or_default();
                        }
                    }
                }
            });
        }
        std::mem::forget(guard);
    });
    // Each route has 2,000 samples: a standard deviation of 1.1 points at most. The seed is fixed.
    for (route, text, known) in [
        (
            "children",
            "tokio::task::JoinHandle > (spawned by this request) > ",
            0.3,
        ),
        ("children", "children::nap", 0.0),
        ("joined", "(one of 2 waits at once)", 0.5),
        ("joined", "tokio::sync::oneshot", 0.25),
        ("joined", "tokio::time::Sleep", 0.75),
        ("selected", "(one of 2 waits at once)", 0.4),
        ("selected", "tokio::sync::oneshot", 0.2),
        ("in time", "tokio::sync::oneshot", 0.25),
        ("in time", "tokio::time::Sleep", 0.75),
        ("cancelled", "tokio::sync::Mutex::lock", 1.0),
    ] {
        let share = share_of(&profile, route, text);
        let folded = profile.folded(Frames::Own);
        assert!(
            (share - known).abs() < 0.03,
            "{route} {text}: {share}\n{folded}"
        );
    }
    let routes = profile.routes();
    let cancelled = routes
        .iter()
        .find(|route| route.name == "cancelled")
        .unwrap();
    let ms = cancelled.latency_ms.unwrap_or_default();
    assert!(cancelled.finished == 0 && (ms - 40.0).abs() < 2.0, "{ms}");
    // Twenty requests at a time, for 40 ms each, in ten seconds.
    assert!(cancelled.dropped.abs_diff(5_000) <= 150, "{cancelled:?}");
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn littles_law_gives_the_time_that_a_request_of_each_route_takes() {
    let profile = profile(1, |profiler, requests| {
        for number in 0..REQUESTS {
            let profiler = profiler.clone();
            requests.spawn_local(async move {
                nap(number).await;
                loop {
                    // Clients of `GET /health` think longer than they wait.
                    if number % 2 == 0 {
                        profiler.wrap("GET /slow", nap(200)).await;
                    } else {
                        profiler.wrap("GET /health", nap(40)).await;
                        nap(60).await;
                    }
                }
            });
        }
    });
    for (route, known) in [("GET /slow", 200.0), ("GET /health", 40.0)] {
        let routes = profile.routes();
        let route = routes.iter().find(|summary| summary.name == route).unwrap();
        let latency = route.latency_ms.unwrap();
        assert!((latency / known - 1.0).abs() < 0.03, "{route:?}");
        let spent: f64 = profile
            .shares(Frames::Own)
            .iter()
            .filter(|share| share.route == route.name)
            .filter_map(|share| share.ms_per_request)
            .sum();
        assert!((spent / latency - 1.0).abs() < 1e-9, "{spent} of {latency}");
    }
}

/// A body whose pieces come every 20 ms, if the client takes them at once.
#[derive(Default)]
struct Drips(Option<Pin<Box<dyn Future<Output = ()>>>>);

impl http_body::Body for Drips {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        let next = self.0.get_or_insert_with(|| Box::pin(hears(20)));
        ready!(next.as_mut().poll(cx));
        self.0 = None;
        let piece = bytes::Bytes::from_static(b"drip");
        Poll::Ready(Some(Ok(http_body::Frame::data(piece))))
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn a_body_waits_for_what_it_sends_or_for_the_client() {
    use http_body::Body;
    use tower::ServiceExt;
    let profile = profile(1, |profiler, requests| {
        let layer = profiler.layer_named(|_: &http::Request<()>| "GET /drips");
        let layer = layer.with_bodies();
        let service = tower::ServiceBuilder::new()
            .layer(layer)
            .service_fn(async |_| Ok::<_, ()>(http::Response::new(Drips::default())));
        for number in 0..REQUESTS {
            let service = service.clone();
            requests.spawn_local(async move {
                nap(number).await;
                let response = service.oneshot(http::Request::new(())).await;
                let mut body = Box::pin(response.unwrap().into_body());
                loop {
                    std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
                    nap(30).await;
                }
            });
        }
    });
    let route = "body of GET /drips";
    for (text, known) in [("(response body: the client", 0.6), ("oneshot", 0.4)] {
        let share = share_of(&profile, route, text);
        let folded = profile.folded(Frames::Own);
        assert!((share - known).abs() < 0.02, "{text}: {share}\n{folded}");
    }
}

/// Asks for each row on its own.
async fn rows() {
    for _ in 0..12 {
        nap(10).await;
    }
    hears(30).await;
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn waits_of_a_loop_are_counted_and_others_are_one() {
    let profile = profile(2, |profiler, requests| {
        for number in 0..REQUESTS {
            let profiler = profiler.clone();
            requests.spawn_local(async move {
                nap(number).await;
                loop {
                    profiler.wrap("rows", rows()).await;
                }
            });
        }
    });
    let shares = profile.shares(Frames::Own);
    let in_a_row = |primitive: &str| {
        let mut places = shares.iter();
        let place = places.find(|share| share.frames[0].to_string().starts_with(primitive));
        place.and_then(|share| share.in_a_row)
    };
    let (naps, message) = (
        in_a_row("tokio::time::Sleep"),
        in_a_row("tokio::sync::oneshot"),
    );
    assert!(
        naps.is_some_and(|times| (9.0..16.0).contains(&times)),
        "{naps:?}"
    );
    assert!(message.is_some_and(|times| times < 1.1), "{message:?}");
}
