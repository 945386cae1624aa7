//! Requests and their children from begin to end, and profiles: one at a time, without losing a request.
#![allow(missing_docs)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use await_profile::{AwaitProfiler, Frame, Frames, ProfileError, ProfileOptions, Release, inherit};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Mutex, Semaphore, oneshot};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Sleep, sleep, timeout};

const LONG: Duration = Duration::from_secs(3600);

fn brief() -> ProfileOptions {
    ProfileOptions::lasting(Duration::from_millis(100))
        .captures_per_second(1000)
        .deadlines(["lifecycle::Deadline"])
}

/// Returns the folded stacks of waits, without lines and weights, once two profiles agree. On a busy machine the request may
/// still be on its way to its wait, or wait alone until its children have begun.
async fn shapes<F: Future<Output = ()> + Send + 'static>(request: F) -> Vec<String> {
    let profiler = AwaitProfiler::new().armed();
    tokio::spawn(profiler.wrap("GET /", request));
    while profiler.in_flight() == 0 {
        yield_now().await;
    }
    let mut before = shapes_now(&profiler).await;
    for _ in 0..20 {
        let now = shapes_now(&profiler).await;
        // A runtime that stands still answers no sample.
        if now == before && !now.is_empty() {
            break;
        }
        before = now;
    }
    before
}

async fn shapes_now(profiler: &AwaitProfiler) -> Vec<String> {
    let profile = profiler.profile(brief()).await.unwrap();
    let places = profile.shares(Frames::Own);
    let is_wait = |leaf: &Frame| leaf.function().is_some();
    let waits = places
        .iter()
        .filter(|share| share.frames.last().is_some_and(is_wait));
    let waiting: f64 = waits.clone().map(|share| share.share).sum();
    let mut shapes: Vec<String> = waits
        .filter(|share| share.share > 0.05 * waiting)
        .map(|share| {
            let mut names = vec![share.route.clone()];
            for frame in &share.frames {
                names.push(match frame.function() {
                    Some(function) => function.to_owned(),
                    None => frame.to_string(),
                });
            }
            names.join(" > ")
        })
        .collect();
    let parent = |shape: &String| {
        let marks = [
            " > (child)",
            " > (one of its children)",
            " > (spawned by this request)",
            " > (one of those spawned by this request)",
        ];
        let split = marks.iter().find_map(|mark| shape.split_once(mark))?;
        Some(split.0.to_owned())
    };
    let parents: Vec<String> = shapes.iter().filter_map(parent).collect();
    shapes.retain(|shape| !parents.contains(shape));
    shapes.sort();
    shapes
}

/// Makes one test for each handler, whose requests have these stacks beneath their route.
macro_rules! shapes {
    ($($test:ident: $handler:ident => [$($shape:literal),*])*) => {
        $(
            #[tokio::test]
            async fn $test() {
                assert_eq!(shapes($handler()).await, [$(concat!("GET / > lifecycle::", $shape)),*]);
            }
        )*
    };
}

shapes! {
    joined_futures_share_a_sample: joins => [
        "joins > (one of 2 waits at once) > lifecycle::nap > tokio::time::Sleep",
        "joins > (one of 2 waits at once) > lifecycle::waits_for > tokio::sync::Semaphore::acquire"
    ]
    selected_futures_share_a_sample: selects => [
        "selects > (one of 2 waits at once) > lifecycle::nap > tokio::time::Sleep",
        "selects > (one of 2 waits at once) > lifecycle::waits_for > tokio::sync::Semaphore::acquire"
    ]
    the_timer_of_a_timeout_is_no_wait: in_time => [
        "in_time > lifecycle::waits_for > tokio::sync::Semaphore::acquire"
    ]
    a_deadline_that_the_reader_names_is_no_wait: in_own_time => [
        "in_own_time > lifecycle::Deadline::poll > lifecycle::waits_for > tokio::sync::Semaphore::acquire"
    ]
    members_of_futures_unordered_are_seen_if_they_inherit: gathers => [
        "gathers > futures_util::stream::FuturesUnordered::poll_next > (one of its children) > lifecycle::nap > tokio::time::Sleep"
    ]
    members_of_a_join_set_are_seen_if_they_inherit: joins_set => [
        "joins_set > tokio::task::JoinSet::join_next > (one of those spawned by this request) > lifecycle::nap > tokio::time::Sleep"
    ]
    a_member_of_a_set_does_not_hang_under_a_handle: joins_both => [
        "joins_both > lifecycle::gathers > futures_util::stream::FuturesUnordered::poll_next > (one of its children) > lifecycle::nap > tokio::time::Sleep"
    ]
    // The profile cannot tell which handle belongs to which task. The frame is true, but no answer.
    what_is_spawned_and_not_awaited_stands_under_the_handle_that_is: detaches => [
        "detaches > tokio::task::JoinHandle > (spawned by this request) > lifecycle::nap > tokio::time::Sleep"
    ]
}

/// Profiles wrappers that keep the request's waker and poll with one of their own. A profile shows only where
/// they keep it.
#[tokio::test]
async fn inside_of_a_wrapper_with_a_waker_of_its_own_nothing_is_seen() {
    let other = AwaitProfiler::new().armed();
    let profiling = other.clone();
    let nested = tokio::spawn(async move {
        let long = ProfileOptions::lasting(LONG);
        profiling.profile(long).await.ok();
    });
    for (shape, expected) in [
        (shapes(shares_future()).await, "lifecycle::shares_future > "),
        (
            shapes(gathers_strangers()).await,
            "lifecycle::gathers_strangers > ",
        ),
        (shapes(other.wrap("nested", nap())).await, ""),
    ] {
        let [shape] = shape.as_slice() else {
            panic!("{shape:?}");
        };
        assert!(shape.starts_with(&format!("GET / > {expected}")), "{shape}");
        assert!(!shape.contains("nap"), "{shape}");
    }
    nested.abort();
}

async fn shares_future() {
    nap().shared().await;
}

async fn gathers_strangers() {
    let mut set: FuturesUnordered<_> = (0..3).map(|_| nap()).collect();
    while set.next().await.is_some() {}
}

async fn nap() {
    sleep(LONG).await;
}

async fn waits_for(semaphore: Arc<Semaphore>) {
    drop(semaphore.acquire().await);
}

async fn joins() {
    tokio::join!(nap(), waits_for(Arc::new(Semaphore::new(0))));
}

async fn selects() {
    tokio::select! {
        () = nap() => {}
        () = waits_for(Arc::new(Semaphore::new(0))) => {}
    }
}

async fn in_time() {
    timeout(LONG, waits_for(Arc::new(Semaphore::new(0))))
        .await
        .ok();
}

/// Deadline as libraries write it: a timer beside the future that it bounds.
struct Deadline<F> {
    timer: Pin<Box<Sleep>>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Deadline<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        self.timer.as_mut().poll(cx).map(|()| None)
    }
}

async fn in_own_time() {
    let deadline = Deadline {
        timer: Box::pin(sleep(LONG)),
        future: Box::pin(waits_for(Arc::new(Semaphore::new(0)))),
    };
    deadline.await;
}

async fn spawns() {
    tokio::spawn(inherit(nap())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawned_child_is_seen_if_it_inherits() {
    assert_eq!(
        shapes(spawns()).await,
        [
            "GET / > lifecycle::spawns > tokio::task::JoinHandle > (spawned by this request) > lifecycle::nap > tokio::time::Sleep"
        ]
    );
}

async fn gathers() {
    let mut set: FuturesUnordered<_> = (0..3).map(|_| inherit(nap())).collect();
    while set.next().await.is_some() {}
}

async fn joins_set() {
    let mut set = JoinSet::new();
    for _ in 0..3 {
        set.spawn(inherit(nap()));
    }
    set.join_next().await;
}

async fn joins_both() {
    let handle = tokio::spawn(waits_for(Arc::new(Semaphore::new(0))));
    drop(tokio::join!(handle, gathers()));
}

async fn detaches() {
    drop(tokio::spawn(inherit(nap())));
    let other = tokio::spawn(waits_for(Arc::new(Semaphore::new(0))));
    other.await.unwrap();
}

async fn holds(lock: Arc<Mutex<u64>>) {
    let mut rows = lock.lock().await;
    // Longer than a busy machine takes to take another sample, so that the timer is sampled, too.
    sleep(Duration::from_millis(10)).await;
    *rows += 1;
}

#[tokio::test]
async fn who_held_the_lock_is_seen_where_it_lets_go() {
    let profiler = AwaitProfiler::new().armed();
    let lock = Arc::new(Mutex::new(0));
    for _ in 0..20 {
        let (profiler, lock) = (profiler.clone(), lock.clone());
        tokio::spawn(async move {
            loop {
                profiler.wrap("GET /", holds(lock.clone())).await;
            }
        });
    }
    releases_once(&profiler, |releases| {
        let of = |primitive: &str| {
            let ends = |frames: &[Frame]| frames.last().is_some_and(|leaf| *leaf == primitive);
            releases.iter().find(|release| ends(&release.frames))
        };
        let (lock, timer) = (of("tokio::sync::Mutex::lock"), of("tokio::time::Sleep"));
        let is_of_holder = lock.is_some_and(|lock| {
            let holder = lock.by.first();
            let is_holder = holder.is_some_and(|holder| {
                holder.function() == Some("lifecycle::holds") && holder.line().is_some()
            });
            let is_guard = !lock.is_of_task && lock.is_by_drop == Some(true);
            is_holder && is_guard && lock.samples > 10 && lock.share > 0.95
        });
        let is_timers = |timer: &Release| {
            timer.by == [Frame::Timer] && !timer.is_of_task && timer.is_by_drop == Some(false)
        };
        is_of_holder && timer.is_some_and(is_timers)
    })
    .await;
}

/// Takes up to three profiles until their releases are right. A machine that stands still may let few requests wait, or make
/// the end of a wait unseen.
async fn releases_once(profiler: &AwaitProfiler, are_right: impl Fn(&[Release]) -> bool) {
    let mut wrong = Vec::new();
    while wrong.len() < 3 {
        let options = ProfileOptions::lasting(Duration::from_millis(500)).captures_per_second(1000);
        let profile = profiler.profile(options).await.unwrap();
        let releases = profile.releases(Frames::Own);
        if are_right(&releases) {
            return;
        }
        wrong.push(releases);
    }
    panic!("{wrong:#?}");
}

async fn takes(permits: &Semaphore) {
    permits.acquire().await.unwrap().forget();
    sleep(Duration::from_millis(10)).await;
    permits.add_permits(1);
}

#[tokio::test]
async fn a_permit_that_is_given_back_by_hand_is_no_guard() {
    let profiler = AwaitProfiler::new().armed();
    let permits = Arc::new(Semaphore::new(1));
    for _ in 0..20 {
        let (profiler, permits) = (profiler.clone(), permits.clone());
        tokio::spawn(async move {
            loop {
                profiler.wrap("GET /", takes(&permits)).await;
            }
        });
    }
    releases_once(&profiler, |releases| {
        let of_permits = |release: &&Release| {
            let leaf = release.frames.last();
            leaf.is_some_and(|leaf| *leaf == "tokio::sync::Semaphore::acquire")
        };
        let release = releases.iter().find(of_permits);
        release.map(|release| release.is_by_drop) == Some(Some(false))
    })
    .await;
}

#[tokio::test]
async fn a_task_that_held_the_lock_is_told_from_requests() {
    let profiler = AwaitProfiler::new().armed();
    let lock = Arc::new(Mutex::new(0));
    let held = lock.clone();
    tokio::spawn(async move {
        loop {
            holds(held.clone()).await;
        }
    });
    for _ in 0..20 {
        let (profiler, lock) = (profiler.clone(), lock.clone());
        tokio::spawn(async move {
            loop {
                profiler
                    .wrap("GET /", async { drop(lock.lock().await) })
                    .await;
            }
        });
    }
    releases_once(&profiler, |releases| {
        let mut of_tasks = releases.iter().filter(|release| release.is_of_task);
        let is_holder = |release: &Release| {
            let mut by = release.by.iter();
            by.any(|frame| frame.function() == Some("lifecycle::holds") && frame.line().is_some())
        };
        let are_held = of_tasks.next().is_some_and(is_holder) && of_tasks.all(is_holder);
        // Requests pass it on.
        are_held && releases.iter().any(|release| !release.is_of_task)
    })
    .await;
}

#[tokio::test]
async fn a_wrapper_within_a_wrapper_does_not_count() {
    let profiler = AwaitProfiler::new().armed();
    tokio::spawn(profiler.wrap("outer", profiler.wrap("inner", nap())));
    sleep(Duration::from_millis(5)).await;
    assert_eq!(profiler.in_flight(), 1);
}

#[tokio::test]
async fn an_armed_profiler_sees_requests_that_hung_before_the_profile() {
    let profiler = AwaitProfiler::new().armed();
    tokio::spawn(profiler.wrap("GET /", nap()));
    sleep(Duration::from_millis(5)).await;
    let mut waiting = 0;
    // A runtime that stands still answers no sample.
    for _ in 0..3 {
        let summary = profiler.profile(brief()).await.unwrap().summary();
        assert_eq!(summary.late_requests, 0, "{summary:?}");
        waiting += summary.samples.waiting;
    }
    assert!(waiting > 10, "{waiting}");
}

#[tokio::test]
async fn a_profiler_that_was_off_tells_how_much_it_did_not_see() {
    let mut idle = 0;
    // A sampler that stands still at the beginning takes no sample before the request is known.
    for _ in 0..3 {
        idle += idle_before_a_request_is_known().await;
        if idle > 0 {
            return;
        }
    }
    panic!("no sample is idle");
}

async fn idle_before_a_request_is_known() -> u64 {
    let profiler = AwaitProfiler::new();
    let (wake, woken) = oneshot::channel();
    tokio::spawn(profiler.wrap("GET /", async {
        woken.await.unwrap();
        nap().await;
    }));
    sleep(Duration::from_millis(5)).await;
    // Long enough for the rest of the test, even on a machine that stands still for a while.
    let options = ProfileOptions::lasting(Duration::from_secs(2)).captures_per_second(1000);
    let (profile, ()) = tokio::join!(profiler.profile(options), async {
        // The profile begins on a thread of its own, which a busy machine may hold up.
        let begins = async {
            while !format!("{profiler:?}").contains("profiling") {
                yield_now().await;
            }
        };
        let patience = Duration::from_secs(20);
        timeout(patience, begins).await.expect("it begins");
        sleep(Duration::from_millis(30)).await;
        wake.send(()).unwrap();
    });
    let summary = profile.unwrap().summary();
    assert_eq!(summary.late_requests, 1);
    assert!(summary.unseen_request_seconds > 0.02, "{summary:?}");
    summary.samples.idle
}

#[tokio::test]
async fn profiles_are_taken_one_at_a_time() {
    let profiler = AwaitProfiler::new();
    let (first, second) = tokio::join!(profiler.profile(brief()), profiler.profile(brief()));
    assert!(first.is_ok());
    assert!(matches!(second, Err(ProfileError::Busy)));
}

#[tokio::test]
async fn a_profile_that_nobody_awaits_ends() {
    let profiler = AwaitProfiler::new();
    let long = profiler.profile(ProfileOptions::lasting(Duration::MAX));
    assert!(timeout(Duration::from_millis(50), long).await.is_err());
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while profiler.profile(brief()).await.is_err() {
        assert!(std::time::Instant::now() < deadline, "still busy");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_stalled_runtime_is_told_from_a_wait() {
    let profiler = AwaitProfiler::new().armed();
    tokio::spawn(profiler.wrap("GET /", nap()));
    sleep(Duration::from_millis(5)).await;
    let thread = std::thread::spawn(move || profiler.profile_blocking(&brief()).unwrap());
    // This runtime has one thread, and it polls nothing while it is in here.
    let profile = thread.join().unwrap();
    let samples = profile.summary().samples;
    assert_eq!(samples.waiting, 0, "{samples:?}");
    assert!(samples.ready + samples.unanswered > 10, "{samples:?}");
}

/// Takes profiles of a service that does everything at once, while another thread of the process resolves
/// names, and checks that no request is lost. `PROFILES` sets the number of profiles, 40 by default.
#[test]
fn profiles_under_load_lose_nothing() {
    let rounds = std::env::var("PROFILES").ok();
    let rounds = rounds.map_or(40, |rounds| rounds.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let profiler = AwaitProfiler::new().armed();
    let (begun, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicU64::new(0));
    let lock = Arc::new(Mutex::new(0u64));
    let mut clients = JoinSet::new();
    for client in 0..1000u64 {
        let (begun, ended, stop, lock) = (begun.clone(), ended.clone(), stop.clone(), lock.clone());
        let profiler = profiler.clone();
        clients.spawn_on(
            async move {
                let mut random = fastrand::Rng::with_seed(client);
                while stop.load(Ordering::Relaxed) == 0 {
                    begun.fetch_add(1, Ordering::Relaxed);
                    let request = profiler.wrap("GET /", request(random.fork(), lock.clone()));
                    // Some clients give up early.
                    let _ = timeout(Duration::from_millis(random.u64(1..200)), request).await;
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            },
            runtime.handle(),
        );
    }
    let resolver = std::thread::spawn({
        let stop = stop.clone();
        move || {
            while stop.load(Ordering::Relaxed) == 0 {
                backtrace::trace(|frame| {
                    backtrace::resolve_frame(frame, |_| {});
                    true
                });
            }
        }
    });
    let mut memory = Vec::new();
    let mut samples = 0;
    // What leaks grows in each half of the profiles. On a crowded machine memory may grow once for another reason: then
    // there are up to three more halves.
    let half = rounds / 2;
    // There, they may also have few samples.
    while memory.len() < rounds
        || (grows(&memory, half) && memory.len() < rounds + 3 * half)
        || (samples <= 1000 && memory.len() < 20 * rounds)
    {
        let options = ProfileOptions::lasting(Duration::from_millis(10)).captures_per_second(5000);
        let profile = profiler.profile_blocking(&options).unwrap();
        samples += profile.summary().samples.of_requests();
        memory.push(resident_kilobytes());
    }
    assert!(samples > 1000, "{samples}");
    stop.store(1, Ordering::Relaxed);
    resolver.join().unwrap();
    runtime.block_on(async {
        let all = timeout(Duration::from_secs(100), async {
            while clients.join_next().await.is_some() {}
        });
        all.await.expect("a request stalled");
    });
    assert_eq!(begun.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
    assert_eq!(profiler.in_flight(), 0);
    assert!(!grows(&memory, half), "memory grew: {memory:?} kB");
}

/// Returns whether memory grew by 16 MiB in the last `half` of the profiles.
fn grows(memory: &[u64], half: usize) -> bool {
    let end = memory.len() - 1;
    memory[end] >= memory[end - half.min(end)] + 16 * 1024
}

async fn request(mut random: fastrand::Rng, lock: Arc<Mutex<u64>>) {
    match random.u8(..8) {
        0 => *lock.lock().await += 1,
        1 => drop(tokio::spawn(inherit(sleep(Duration::from_millis(5)))).await),
        2 => yield_now().await,
        3 => {
            let mut set: FuturesUnordered<_> = (1..4)
                .map(|millis| inherit(sleep(Duration::from_millis(millis))))
                .collect();
            while set.next().await.is_some() {}
        }
        4 => {
            // Another thread wakes the request, and also keeps the waker for a while.
            let (sender, receiver) = oneshot::channel();
            tokio::task::spawn_blocking(move || sender.send(()));
            receiver.await.ok();
        }
        5 => drop(timeout(Duration::from_millis(2), lock.lock()).await),
        6 => {
            tokio::select! {
                () = sleep(Duration::from_millis(random.u64(1..20))) => {}
                _ = lock.lock() => {}
            }
        }
        _ => sleep(Duration::from_millis(random.u64(1..300))).await,
    }
}

/// Returns the resident memory of this process in kilobytes, or 0 if it is unknown.
fn resident_kilobytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * 4
}
