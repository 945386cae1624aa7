//! Counts of waits, compared with waits of known length. Most tests move the clock, and take their choices from a seed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use ecosystem::WaitKind;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::{advance, sleep};

use super::{permit, sampler};
use crate::collected::{Outcome, Sample};
use crate::counting::{Counting, WaitCounts};
use crate::session::Purpose;
use crate::shared::Permit;
use crate::{AwaitProfiler, ProfileError};

const REQUESTS: u64 = 100;
/// Number of samples. A share of one half then has a standard deviation of 0.7 points. The seed is fixed.
const SAMPLES: u32 = 5_000;
const PERIOD: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(20);

fn counting(profiler: &AwaitProfiler, seed: u64) -> (Permit, Counting, WaitCounts) {
    let permit = Permit::acquire(&profiler.shared, Purpose::Counts).unwrap();
    let (counting, counts) = Counting::start(&permit, fastrand::Rng::with_seed(seed));
    (permit, counting, counts)
}

/// Returns the counted seconds by route and kind.
fn seconds(counts: &WaitCounts) -> HashMap<(String, Option<WaitKind>), f64> {
    let all = counts.all().into_iter();
    all.map(|one| ((one.route.to_string(), one.wait), one.seconds))
        .collect()
}

fn after(millis: u64, then: impl FnOnce() + 'static) {
    spawn_local(async move {
        sleep(Duration::from_millis(millis)).await;
        then();
    });
}

/// Waits for a permit for 30 ms and for a timer for 70 ms, or for a message all the time, over and over.
async fn request(number: u64) {
    sleep(Duration::from_millis(number)).await;
    let pool = Arc::new(Semaphore::new(1));
    loop {
        if number.is_multiple_of(4) {
            let (sender, receiver) = oneshot::channel();
            after(20, || sender.send(()).unwrap_or_default());
            receiver.await.unwrap_or_default();
            continue;
        }
        let permit = pool.clone().acquire_owned().await;
        after(30, || drop(permit));
        drop(pool.acquire().await);
        sleep(Duration::from_millis(70)).await;
    }
}

/// Lets requests answer, moves the clock by a millisecond, and polls the tasks that it woke.
async fn step() {
    for _ in 0..4 {
        yield_now().await;
    }
    advance(Duration::from_millis(1)).await;
    for _ in 0..4 {
        yield_now().await;
    }
}

/// Waits until every request has been polled.
async fn all_polled() {
    for _ in 0..REQUESTS {
        step().await;
    }
}

/// Runs a hundred requests, a quarter of them on the route `GET /message` and the others on `GET /pool`.
fn with_requests<F: Future>(profiler: &AwaitProfiler, run: impl FnOnce() -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let requests = LocalSet::new();
    for number in 0..REQUESTS {
        let route = if number % 4 == 0 {
            "GET /message"
        } else {
            "GET /pool"
        };
        requests.spawn_local(profiler.wrap(route, request(number)));
    }
    runtime.block_on(requests.run_until(async {
        for _ in 0..2 * REQUESTS {
            step().await;
        }
        run().await
    }))
}

/// Checks that the requests of [`with_requests`] were counted as they waited, each sample for a tenth of a second.
fn assert_shares(counts: &WaitCounts) {
    let counted = seconds(counts);
    let all = f64::from(SAMPLES) * REQUESTS as f64 * PERIOD.as_secs_f64();
    let sum: f64 = counted.values().sum();
    assert!((sum / all - 1.0).abs() < 1e-6, "{sum} of {all}");
    assert_eq!(counts.samples(), u64::from(SAMPLES));
    for (route, kind, known) in [
        ("GET /message", WaitKind::Channel, 0.25),
        ("GET /pool", WaitKind::Limit, 0.75 * 0.3),
        ("GET /pool", WaitKind::Timer, 0.75 * 0.7),
    ] {
        let counted = counted.get(&(route.to_owned(), Some(kind)));
        let share = counted.copied().unwrap_or_default() / all;
        assert!((share - known).abs() < 0.02, "{route} {kind:?}: {share}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn the_seconds_of_each_route_go_to_what_it_waits_for() {
    let profiler = AwaitProfiler::new().armed();
    let counts = with_requests(&profiler, async || {
        let (permit, mut counting, counts) = counting(&profiler, 1);
        all_polled().await;
        for number in 0..SAMPLES {
            counting.sample(PERIOD);
            step().await;
            counting.count();
            if number % 1_000 == 0 {
                counting.look_up(&permit);
            }
        }
        counting.look_up(&permit);
        counting.count();
        counts
    });
    assert_shares(&counts);
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn the_last_samples_are_kept_one_by_one_with_their_places() {
    let profiler = AwaitProfiler::new().armed();
    let counts = with_requests(&profiler, async || {
        let (permit, mut counting, counts) = counting(&profiler, 1);
        all_polled().await;
        counting.sample(PERIOD);
        step().await;
        counting.count();
        assert_eq!((counts.recent().waits, counts.recent().open), (vec![], 1));
        for _ in 1..SAMPLES {
            counting.sample(PERIOD);
            step().await;
            counting.count();
        }
        counting.look_up(&permit);
        counting.count();
        counts
    });
    let recent = counts.recent();
    assert_eq!((recent.waits.len(), recent.open), (3_000, 0));
    let mut places = HashMap::new();
    for wait in recent.waits {
        // This crate's own code is not the reader's, so the place is the function that is waited in.
        let place = wait.place.expect("it waits");
        let first = places.entry(wait.wait).or_insert_with(|| place.clone());
        assert_eq!(*first, place);
        assert!((wait.seconds - REQUESTS as f64 * 0.1).abs() < 1e-6);
    }
    assert_eq!(places.len(), 3, "{places:?}");
    assert_eq!(&*places[&Some(WaitKind::Timer)], "tokio::time::Sleep");
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn a_profile_and_counts_take_nothing_from_each_other() {
    let profiler = AwaitProfiler::new().armed();
    with_requests(&profiler, async || {
        let (for_counts, mut counting, counts) = counting(&profiler, 1);
        all_polled().await;
        let for_profile = permit(&profiler);
        let mut profile = sampler(&for_profile, 2);
        for number in 0..SAMPLES {
            // The profile ends before the counts do.
            if number < SAMPLES / 2 {
                profile.sample_once();
            } else if number == SAMPLES / 2 {
                for_profile.switch_off();
            }
            counting.sample(PERIOD);
            step().await;
            profile.gather();
            counting.count();
        }
        counting.look_up(&for_counts);
        counting.count();
        assert_shares(&counts);
        let samples = profile.finish().samples;
        let is_seen = |one: &Sample| matches!(one.outcome, Outcome::Waiting(_));
        assert_eq!(samples.len(), SAMPLES as usize / 2);
        assert!(samples.iter().all(is_seen));
        let released = samples.iter().filter(|one| one.release.is_some()).count();
        assert!(released > samples.len() * 9 / 10, "{released}");
    });
}

#[test]
#[cfg_attr(miri, ignore = "needs real stacks")]
fn a_closure_on_a_blocking_thread_is_told_from_a_task() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let profiler = AwaitProfiler::new().armed();
    let (permit, mut counting, counts) = counting(&profiler, 1);
    let is_over = Arc::new(AtomicBool::new(false));
    runtime.block_on(async {
        let over = is_over.clone();
        let blocking = profiler.wrap("GET /blocking", async move {
            while !over.load(Relaxed) {
                let closure = tokio::task::spawn_blocking(move || thread::sleep(PAUSE));
                closure.await.unwrap();
            }
        });
        let over = is_over.clone();
        let task = profiler.wrap("GET /task", async move {
            while !over.load(Relaxed) {
                tokio::spawn(sleep(PAUSE)).await.unwrap();
            }
        });
        let requests = [tokio::spawn(blocking), tokio::spawn(task)];
        for _ in 0..100 {
            sleep(Duration::from_millis(3)).await;
            counting.sample(PERIOD);
        }
        // Only the end of a wait tells what it was for.
        is_over.store(true, Relaxed);
        for request in requests {
            request.await.unwrap();
        }
        counting.count();
        // The names of the waits, then those of the code that ended them.
        for _ in 0..2 {
            counting.look_up(&permit);
            counting.count();
        }
    });
    let counted = seconds(&counts);
    let of = |route: &str, kind| counted.get(&(route.to_owned(), Some(kind))).copied();
    assert!(
        of("GET /blocking", WaitKind::BlockingPool) > Some(1.0),
        "{counted:?}"
    );
    assert!(of("GET /task", WaitKind::Task) > Some(1.0), "{counted:?}");
    for (route, kind) in [
        ("GET /blocking", WaitKind::Task),
        ("GET /task", WaitKind::BlockingPool),
    ] {
        assert_eq!(of(route, kind), None, "{counted:?}");
    }
}

#[test]
fn routes_beyond_the_bound_count_as_others_and_nothing_is_lost() {
    let profiler = AwaitProfiler::new().armed();
    let (_permit, mut counting, counts) = counting(&profiler, 1);
    for number in 0..100 {
        let mut request = Box::pin(profiler.wrap(format!("GET /{number}"), async {
            // A request that is being polled needs no names.
            counting.sample(PERIOD);
            counting.count();
        }));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(request.as_mut().poll(&mut context).is_ready());
    }
    let counted = seconds(&counts);
    assert_eq!(counted.len(), 33);
    let others = ("(other routes)".to_owned(), Some(WaitKind::Running));
    assert!((counted[&others] - 6.8).abs() < 1e-6, "{counted:?}");
    assert!((counted.values().sum::<f64>() - 10.0).abs() < 1e-6);
}

#[test]
fn a_profiler_counts_once_at_a_time_and_ends_with_the_last_handle() {
    let profiler = AwaitProfiler::new();
    let counts = profiler.count_waits().unwrap();
    let again = profiler.count_waits();
    assert!(matches!(again, Err(ProfileError::Busy)), "{again:?}");
    assert_eq!(counts.all(), []);
    drop(counts);
    while format!("{profiler:?}").contains("counting") {
        thread::yield_now();
    }
    profiler.count_waits().unwrap();
}
