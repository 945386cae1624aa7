//! Searches for a capacity, and how often their interval misses it: simulated, with fixed seeds.

use rand::RngExt as _;
use rand_pcg::Pcg64;
use statistics::capacity::{Capacity, LONGEST_S, Search, Searches, Step};
use statistics::verdict::{Goal, Speed, judge_interval};

/// A service that is simulated: whether a step at a rate holds, at a time in seconds.
type Service<'s> = dyn FnMut(f64, f64, &mut Pcg64) -> bool + 's;

/// Seconds that a step takes with its pauses.
const STEP_S: f64 = 5.0;

/// Runs a whole search by the command's own steps.
fn search(first: f64, service: &mut Service<'_>, random: &mut Pcg64) -> (Option<Capacity>, usize) {
    let mut search = Search::from(first);
    let (mut at_s, mut steps) = (0.0, 0);
    while at_s + STEP_S <= LONGEST_S && !search.is_decided() {
        let rate = search.next(at_s);
        let at = at_s + STEP_S / 2.0;
        search.add(Step {
            rate,
            at_s: at,
            holds: service(rate, at, random),
        });
        (at_s, steps) = (at_s + STEP_S, steps + 1);
    }
    (search.capacity(), steps)
}

/// Results of many searches.
#[derive(Debug, Default)]
struct Seen {
    covered: f64,
    drifting: f64,
    width: f64,
    steps: f64,
    /// Share of searches whose interval misses the capacity and which report no drift.
    misled: f64,
}

/// Runs `runs` searches of a service whose capacity in the middle of a search is `capacity(seconds)`.
fn many(
    runs: u32,
    draw: u64,
    mut service: impl FnMut(f64, f64, &mut Pcg64) -> bool,
    capacity: impl Fn(f64) -> f64,
) -> Seen {
    let mut random = Pcg64::new(draw.into(), 3);
    let mut seen = Seen::default();
    let share = 1.0 / f64::from(runs);
    for _ in 0..runs {
        // The first rate is a guess.
        let first = 1000.0 * (4.0 * random.random::<f64>() - 2.0).exp();
        let (found, steps) = search(first, &mut service, &mut random);
        let Capacity {
            interval, drift, ..
        } = found.expect("steps to both sides");
        let truth = capacity(steps as f64 * STEP_S);
        let is_covered = interval.0 <= truth && truth <= interval.1;
        seen.covered += share * f64::from(u8::from(is_covered));
        seen.drifting += share * f64::from(u8::from(drift.is_some()));
        seen.misled += share * f64::from(u8::from(drift.is_none() && !is_covered));
        seen.width += share * (interval.1 / interval.0 - 1.0);
        seen.steps += share * steps as f64;
    }
    seen
}

/// Returns whether a step holds by a logistic curve, with steps that fail whatever their rate.
fn logistic(capacity: f64, rate: f64, slope: f64, lapses: f64, random: &mut Pcg64) -> bool {
    let above = (rate / capacity).ln() / slope;
    random.random::<f64>() < (1.0 - lapses) / (1.0 + above.exp())
}

#[test]
fn the_interval_holds_the_capacity_in_19_of_20_searches() {
    for slope in [0.001, 0.01, 0.03, 0.1] {
        for lapses in [0.0, 0.05] {
            let seen = many(
                50,
                7,
                |rate, _, random| logistic(1000.0, rate, slope, lapses, random),
                |_| 1000.0,
            );
            println!("slope {slope}, lapses {lapses}: {seen:?}");
            assert!(
                seen.covered >= 0.92,
                "slope {slope}, lapses {lapses}: {seen:?}"
            );
            assert!(
                seen.drifting <= 0.05,
                "slope {slope}, lapses {lapses}: {seen:?}"
            );
        }
    }
}

/// Returns the share of requests that take over `limit` seconds at one server with exponential service times, in a step
/// of three seconds after an idle start (D. V. Lindley's recursion, 1952).
fn late_share(rate: f64, mean: f64, limit: f64, random: &mut Pcg64) -> f64 {
    let mut exponential = |mean: f64| -(1.0 - random.random::<f64>()).ln() * mean;
    let (mut now, mut free_at, mut late, mut count) = (0.0, 0.0_f64, 0.0, 0.0);
    while now < 3.5 {
        now += exponential(1.0 / rate);
        free_at = free_at.max(now) + exponential(mean);
        if now >= 0.5 {
            count += 1.0;
            late += f64::from(u8::from(free_at - now > limit));
        }
    }
    late / count
}

/// The curve of a real queue is no logistic one, and not symmetric. Its capacity is found by many steps at each rate.
#[test]
fn the_capacity_of_a_queue_is_found_with_its_interval() {
    let holds = |rate: f64, random: &mut Pcg64| late_share(rate, 0.001, 0.03, random) < 0.01;
    let mut random = Pcg64::new(5, 3);
    let (mut low, mut high) = (100.0_f64, 1000.0_f64);
    while high / low > 1.002 {
        let rate = (low * high).sqrt();
        let held = (0..400).filter(|_| holds(rate, &mut random)).count();
        if held > 200 { low = rate } else { high = rate }
    }
    let capacity = (low * high).sqrt();
    // Theory for an endless load: the 99th percentile is ln(100) / (service rate - rate), so 846 requests per second.
    assert!((800.0..900.0).contains(&capacity), "{capacity}");
    let seen = many(100, 11, |rate, _, random| holds(rate, random), |_| capacity);
    println!("queue of capacity {capacity:.0}: {seen:?}");
    assert!(seen.covered >= 0.9, "{seen:?}");
    assert!(seen.drifting <= 0.05, "{seen:?}");
}

/// A search whose capacity changes says so, or its interval still holds the capacity in its middle.
#[test]
fn a_capacity_that_drifts_is_reported_or_within_the_interval() {
    for (name, change) in [("rises", 0.3), ("falls", -0.3), ("rises little", 0.1)] {
        let capacity = |at_s: f64| 1000.0 * (change * at_s / LONGEST_S).exp();
        for slope in [0.01, 0.05] {
            let seen = many(
                50,
                13,
                |rate, at_s, random| logistic(capacity(at_s), rate, slope, 0.02, random),
                |took_s| capacity(took_s / 2.0),
            );
            println!("{name}, slope {slope}: {seen:?}");
            assert!(seen.misled <= 0.1, "{name}, slope {slope}: {seen:?}");
        }
    }
}

#[test]
fn a_search_for_what_the_generator_cannot_reach_ends() {
    let mut search = Search::from(100.0);
    let mut steps = 0;
    while !search.is_decided() && steps < 40 {
        let rate = search.next(f64::from(steps));
        if rate > 900.0 {
            search.cannot_reach(rate);
        } else {
            let at_s = f64::from(steps);
            search.add(Step {
                rate,
                at_s,
                holds: true,
            });
        }
        steps += 1;
    }
    assert!(search.held().unwrap() > 600.0);
}

/// Time of a comparison by default, in seconds.
const COMPARISON_S: f64 = 300.0;

/// Results of many comparisons of two capacities.
#[derive(Debug, Default)]
struct Compared {
    covered: f64,
    /// Shares of comparisons that call the change faster, slower and no different.
    faster: f64,
    slower: f64,
    same: f64,
    width: f64,
    steps: f64,
}

/// Compares, `runs` times, a base of capacity 1000 with a change that has `ratio` times as much. Each step has a fresh
/// server, whose capacity is another one by `starts`, as a logarithm; `machine` changes both over time.
fn pairs(
    runs: u32,
    ratio: f64,
    (slope, lapses, starts): (f64, f64, f64),
    machine: impl Fn(f64) -> f64,
) -> Compared {
    let goal = Goal::Difference { margin: 0.05 };
    let mut random = Pcg64::new(17, 3);
    let mut seen = Compared::default();
    let share = 1.0 / f64::from(runs);
    for _ in 0..runs {
        // Half of what a closed load reaches.
        let mut first = |capacity: f64| capacity * (0.2 + random.random::<f64>());
        let mut searches = Searches {
            base: Search::from(first(1000.0)),
            change: Search::from(first(1000.0 * ratio)),
        };
        let (mut at_s, mut found) = (0.0, None);
        for is_change in Searches::order(100) {
            if at_s + STEP_S > COMPARISON_S {
                break;
            }
            let (search, capacity) = if is_change {
                (&mut searches.change, 1000.0 * ratio)
            } else {
                (&mut searches.base, 1000.0)
            };
            let (rate, at) = (search.next(at_s), at_s + STEP_S / 2.0);
            // Uniform with this standard deviation.
            let start = (random.random::<f64>() - 0.5) * 12.0_f64.sqrt() * starts;
            let capacity = capacity * machine(at) * start.exp();
            let holds = logistic(capacity, rate, slope, lapses, &mut random);
            search.add(Step {
                rate,
                at_s: at,
                holds,
            });
            at_s += STEP_S;
            found = searches.ratio();
            if let Some(found) = found
                && searches.is_look()
                && judge_interval("", found.interval, goal).kind != Speed::Inconclusive
            {
                break;
            }
        }
        let (low, high) = found.expect("steps to both sides").interval;
        seen.covered += share * f64::from(u8::from(low <= ratio && ratio <= high));
        match judge_interval("", (low, high), goal).kind {
            Speed::Faster => seen.faster += share,
            Speed::Slower => seen.slower += share,
            Speed::NoDifference => seen.same += share,
            Speed::Inconclusive | Speed::Invalid => {}
        }
        seen.width += share * (high / low - 1.0);
        seen.steps += share * at_s / STEP_S;
    }
    seen
}

#[test]
fn the_interval_of_a_ratio_of_capacities_holds_it() {
    for slope in [0.001, 0.01, 0.03, 0.1] {
        for ratio in [1.0, 1.1, 0.7] {
            for (lapses, starts) in [(0.0, 0.0), (0.05, 0.03)] {
                let seen = pairs(50, ratio, (slope, lapses, starts), |_| 1.0);
                println!(
                    "slope {slope}, ratio {ratio}, lapses {lapses}, starts {starts}: {seen:?}"
                );
                assert!(
                    seen.covered >= 0.94,
                    "slope {slope}, ratio {ratio}: {seen:?}"
                );
                if (ratio - 1.0_f64).abs() < 1e-9 {
                    assert!(seen.faster + seen.slower <= 0.04, "slope {slope}: {seen:?}");
                }
            }
        }
    }
}

/// A machine that slows down falls on both builds alike.
#[test]
fn a_machine_that_changes_favors_neither_capacity() {
    for change in [-0.4, -0.2, 0.2] {
        for slope in [0.01, 0.05] {
            let machine = |at_s: f64| (change * at_s / COMPARISON_S).exp();
            let seen = pairs(50, 1.0, (slope, 0.02, 0.02), machine);
            println!("machine {change}, slope {slope}: {seen:?}");
            assert!(seen.covered >= 0.94, "machine {change}: {seen:?}");
        }
    }
    // It stops being itself for the last third: the curve of each build becomes flat, and the interval wide.
    let machine = |at_s: f64| if at_s > 200.0 { 0.7 } else { 1.0 };
    let seen = pairs(50, 1.0, (0.02, 0.02, 0.02), machine);
    println!("machine slower from 200 s on: {seen:?}");
    assert!(seen.covered >= 0.9, "{seen:?}");
}
