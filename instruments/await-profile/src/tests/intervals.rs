//! Intervals, compared over many profiles with the true figures that they should contain.
//!
//! A service is busy or calm. While it is busy, thirty requests are in flight, most of them for
//! `GET /a` and running. Three finish from one moment to the next. While it is calm, there are ten,
//! few of them for `GET /a` or running, and one finishes. Seeds are fixed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::collected::{Collected, Outcome, Sample, Waits};
use crate::interval::RunEnd;
use crate::symbols::SymbolCache;
use crate::{Frames, Interval, Profile, ProfileOptions};

const PROFILES: u64 = 400;
const MOMENTS: u64 = 2000;
/// Share of `GET /a` in all requests in flight. Below it, the share of running requests of `GET /a`.
const OF_A: f64 = (30.0 * 0.6 + 10.0 * 0.3) / 40.0;
const RUNNING_A: f64 = (30.0 * 0.6 * 0.8 + 10.0 * 0.3 * 0.2) / 40.0;
/// Mean time of a request: twenty are in flight on average, and two finish in 5 ms.
const LATENCY_MS: f64 = 50.0;

/// Simulates a profile of the service. With a probability of `stays`, the service stays busy or calm
/// from one moment to the next. At one half, each moment is independent of the one before.
fn collect(seed: u64, stays: f64) -> Collected {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut collected = Collected::default();
    let (mut busy, mut time, mut finished) = (random.bool(), 0.0, 0);
    let routes: [Arc<str>; 2] = ["GET /a".into(), "GET /b".into()];
    for moment in 0..MOMENTS {
        if random.f64() > stays {
            busy = !busy;
        }
        let (in_flight, of_a, running) = if busy { (30, 0.6, 0.8) } else { (10, 0.3, 0.2) };
        time += 0.005 * -(1.0 - random.f64()).ln();
        // The number is spread evenly about the mean.
        finished += random.u64(..=2 * in_flight / 10);
        let outcome = if random.f64() < running {
            Outcome::Running
        } else {
            Outcome::Ready
        };
        collected.samples.push(Sample {
            moment,
            in_flight: u32::try_from(in_flight).unwrap(),
            route: routes[usize::from(random.f64() > of_a)].clone(),
            request: None,
            outcome,
            delay: Duration::ZERO,
            meanwhile: None,
            child: Waits::default(),
            child_is_member: false,
            has_several_children: false,
            release: None,
            releaser: None,
            is_followed: false,
        });
        if collected.runs.end_at(moment + 1) {
            collected.runs.push(RunEnd {
                moments: moment + 1,
                time: Duration::from_secs_f64(time),
                requests: finished,
                finished: HashMap::from([(routes[0].clone(), finished)]),
            });
        }
    }
    collected.elapsed = Duration::from_secs_f64(time);
    collected.runs.close(RunEnd {
        moments: MOMENTS,
        time: collected.elapsed,
        requests: finished,
        finished: HashMap::from([(routes[0].clone(), finished)]),
    });
    collected
}

fn profile(collected: Collected) -> Profile {
    let options = ProfileOptions::default();
    Profile::new(collected, &options, &mut SymbolCache::default())
}

/// Returns the share of the profiles whose interval contains the truth, for a route's share, a stack's
/// share and the latency.
fn coverage(stays: f64) -> [f64; 3] {
    let counts = std::thread::scope(|scope| {
        let threads = [0, 1].map(|first| {
            let seeds = (first..PROFILES).step_by(2);
            scope.spawn(move || seeds.map(|seed| covered(seed, stays)).collect::<Vec<_>>())
        });
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    [0, 1, 2].map(|figure| {
        let covered = counts.iter().filter(|covered| covered[figure]);
        covered.count() as f64 / PROFILES as f64
    })
}

fn covered(seed: u64, stays: f64) -> [bool; 3] {
    let profile = profile(collect(seed, stays));
    let summary = profile.summary();
    let running_a = || {
        let mut places = summary.places.iter();
        let place = places.find(|place| place.route == "GET /a" && place.frames[0] == "(running)");
        place.and_then(|place| place.share_interval)
    };
    let routes = &summary.routes;
    let a = routes.iter().find(|route| route.name == "GET /a");
    let figures = [
        (a.unwrap().share_interval, OF_A),
        (running_a(), RUNNING_A),
        (summary.mean_latency_interval_ms, LATENCY_MS),
    ];
    figures.map(|(interval, truth)| {
        let Interval { low, high } = interval.unwrap();
        low <= truth && truth <= high
    })
}

#[test]
#[cfg_attr(miri, ignore = "takes too long there")]
fn ninety_five_of_a_hundred_intervals_have_the_truth_in_them() {
    // At 0.95, the service stays in a state for about as many moments as fall on a request of 100 ms at 200 a second.
    for stays in [0.5, 0.95] {
        let coverage = coverage(stays);
        println!("{stays}: {coverage:?}");
        for covered in coverage {
            assert!((0.93..=0.97).contains(&covered), "{stays}: {coverage:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long there")]
fn an_interval_has_its_figure_in_it_and_a_share_stays_below_one() {
    let summary = profile(collect(1, 0.9)).summary();
    let routes = summary.routes.iter();
    let shares = routes.map(|route| (route.share, route.share_interval));
    let places = summary.places.iter();
    let shares = shares.chain(places.map(|place| (place.share, place.share_interval)));
    for (share, interval) in shares {
        let Interval { low, high } = interval.unwrap();
        assert!(0.0 < low && low < share && share < high && high < 1.0);
    }
    // `GET /b` has requests in flight, but none of them finished.
    let b = summary.routes.iter().find(|route| route.name == "GET /b");
    assert_eq!(b.unwrap().latency_interval_ms, None);

    let mut all_alike = collect(1, 0.9);
    for sample in &mut all_alike.samples {
        sample.outcome = Outcome::Running;
        sample.route = "GET /a".into();
    }
    let shares = profile(all_alike).shares(Frames::Own);
    let interval = shares[0].share_interval.unwrap();
    assert_eq!((interval.low, interval.high), (1.0, 1.0));
}

#[test]
fn of_a_few_moments_there_is_no_interval() {
    let mut few = collect(1, 0.5);
    few.samples.truncate(20);
    few.runs = crate::interval::Runs::default();
    for moment in 1..=20 {
        few.runs.push(RunEnd {
            moments: moment,
            time: Duration::from_millis(5 * moment),
            requests: 0,
            finished: HashMap::new(),
        });
    }
    let summary = profile(few).summary();
    assert_eq!(summary.mean_latency_interval_ms, None);
    assert!(
        summary
            .places
            .iter()
            .all(|place| place.share_interval.is_none())
    );
}
