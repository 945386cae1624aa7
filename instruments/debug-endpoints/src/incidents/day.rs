//! A day of traffic, in virtual time: what is an incident, and what is not.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::incidents::condition::Cpu;
use crate::incidents::judge::{Event, Judge, Second};
use crate::incidents::kind::Kind;
use crate::incidents::options::Incidents;
use crate::incidents::traffic::{RouteSeen, Seen};

const SECOND: Duration = Duration::from_secs(1);
const DAY: u64 = 86_400;

/// Looks at the requests in flight, each second.
const LOOKS: usize = 10;

/// Numbers that look random: `SplitMix64` (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1, without 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an exponentially distributed number with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

/// Traffic of one route: requests a second, and the time of a request in seconds, at a second of the day.
struct Route {
    name: &'static str,
    rate: fn(u64) -> f64,
    time: fn(u64, &mut Random) -> f64,
}

/// Requests of a route in flight: how many end in each of the coming looks.
#[derive(Default)]
struct InFlight {
    now: usize,
    ends: VecDeque<usize>,
}

impl InFlight {
    /// Lets the time between two looks go by, and returns how many requests ended.
    fn step(&mut self, arrivals: &[f64]) -> u64 {
        let mut ended = self.ends.pop_front().unwrap_or_default();
        self.now -= ended;
        for time in arrivals {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let looks = (time * LOOKS as f64) as usize;
            if looks == 0 {
                ended += 1;
                continue;
            }
            if self.ends.len() < looks {
                self.ends.resize(looks, 0);
            }
            self.ends[looks - 1] += 1;
            self.now += 1;
        }
        ended as u64
    }

    /// Returns the requests of a second, and the smallest number in flight.
    fn second(&mut self, route: &Route, at: u64, random: &mut Random) -> (RouteSeen, usize) {
        let mut seen = RouteSeen::default();
        let mut least = usize::MAX;
        let mut next = random.exponential(1.0 / (route.rate)(at));
        for look in 1..=LOOKS {
            let mut times = Vec::new();
            while next < look as f64 / LOOKS as f64 {
                let time = (route.time)(at, random);
                seen.request_seconds += time;
                times.push(time);
                next += random.exponential(1.0 / (route.rate)(at));
            }
            seen.ended += self.step(&times);
            least = least.min(self.now);
        }
        (seen, least)
    }
}

/// Lets the traffic of these routes go by, and returns the incidents. `at_second` may change what is seen.
fn incidents(
    routes: &[Route],
    seed: u64,
    seconds: u64,
    mut at_second: impl FnMut(u64, &mut Judge, &mut Second),
) -> Vec<(u64, Event)> {
    let mut random = Random(seed);
    let mut judge = Judge::new(Incidents::new());
    let mut in_flight: Vec<_> = routes.iter().map(|_| InFlight::default()).collect();
    let mut incidents = Vec::new();
    for at in 0..seconds {
        let mut all = HashMap::new();
        let mut least_in_flight = 0;
        for (route, in_flight) in routes.iter().zip(&mut in_flight) {
            let (requests, least) = in_flight.second(route, at, &mut random);
            all.insert(Arc::from(route.name), requests);
            least_in_flight += least;
        }
        let mut second = Second {
            length: SECOND,
            requests: Seen {
                routes: all,
                least_in_flight: Some(least_in_flight),
            },
            cpu: Cpu::Had,
            readings: Vec::new(),
        };
        at_second(at, &mut judge, &mut second);
        judge.second(SECOND * u32::try_from(at).expect("a day"), &second);
        incidents.extend(judge.events().into_iter().map(|event| (at, event)));
    }
    incidents
}

/// Returns the kinds and times of the recorded ones.
fn recorded(incidents: &[(u64, Event)]) -> Vec<(Kind, u64)> {
    let mut recorded = Vec::new();
    for (at, event) in incidents {
        if let Event::Recorded { key, .. } = event {
            recorded.push((key.0, *at));
        }
    }
    recorded
}

/// Share of the day's peak at this second: a fifth at four in the morning, all of it at four in the afternoon.
fn wave(at: u64) -> f64 {
    let hours = (at % DAY) as f64 / 3600.0;
    0.6 - 0.4 * ((hours - 4.0) / 24.0 * std::f64::consts::TAU).cos()
}

/// Traffic is three times as much for two minutes of each 47.
fn burst(at: u64) -> f64 {
    if at % (47 * 60) < 120 { 3.0 } else { 1.0 }
}

/// Returns the traffic of an ordinary shop.
fn shop() -> Vec<Route> {
    vec![
        Route {
            name: "GET /item",
            rate: |at| 30.0 * wave(at) * burst(at),
            // Busier is slower, too.
            time: |at, random| (0.01 + random.exponential(0.03)) * burst(at).sqrt(),
        },
        Route {
            name: "POST /order",
            rate: |at| 3.0 * wave(at) * burst(at),
            // One of ten pays by a slow partner.
            time: |_, random| {
                let mean = if random.next() < 0.1 { 2.0 } else { 0.05 };
                random.exponential(mean)
            },
        },
        Route {
            name: "GET /report",
            rate: |_| 0.05,
            // One of fifty is for a whole year.
            time: |_, random| {
                let mean = if random.next() < 0.02 { 20.0 } else { 0.4 };
                random.exponential(mean)
            },
        },
    ]
}

/// Returns the traffic of a service that has next to nothing to do.
fn quiet() -> Vec<Route> {
    vec![Route {
        name: "GET /night",
        rate: |_| 1.0 / 60.0,
        time: |_, random| random.exponential(0.5),
    }]
}

/// Returns the traffic of a service that is called by a clock: a hundred requests each minute, at once.
fn by_the_clock() -> Vec<Route> {
    vec![Route {
        name: "GET /export",
        rate: |at| if at % 60 == 0 { 100.0 } else { 0.1 },
        time: |_, random| 0.2 + random.exponential(0.4),
    }]
}

#[test]
fn a_day_of_ordinary_traffic_gives_no_incident() {
    for seed in 1..=3 {
        for (routes, what) in [
            (shop(), "shop"),
            (quiet(), "quiet"),
            (by_the_clock(), "clock"),
        ] {
            let incidents = incidents(&routes, seed, DAY, |_, _, _| ());
            assert!(incidents.is_empty(), "{what} {seed}: {incidents:?}");
        }
    }
}

#[test]
fn a_start_with_cold_caches_gives_no_incident_nor_does_the_morning_after_a_quiet_night() {
    let cold = [Route {
        name: "GET /item",
        rate: |at| if at < 40_000 { 1.0 / 60.0 } else { 40.0 },
        time: |at, random| random.exponential(if at % 40_000 < 300 { 0.2 } else { 0.04 }),
    }];
    let incidents = incidents(&cold, 7, 50_000, |_, _, _| ());
    assert!(incidents.is_empty(), "{incidents:?}");
}

#[test]
fn a_service_whose_database_hangs_gives_one_incident_and_its_end() {
    let hangs = 50_000..50_030;
    let mut shop = shop();
    shop[0].time = |at, random| {
        if (50_000..50_030).contains(&at) {
            (50_030 - at) as f64
        } else {
            random.exponential(0.03)
        }
    };
    let incidents = incidents(&shop, 1, 60_000, |_, _, _| ());
    let recorded = recorded(&incidents);
    assert!(!recorded.is_empty() && recorded.len() <= 2, "{incidents:?}");
    assert!(hangs.contains(&recorded[0].1), "{incidents:?}");
    let ended = |kind| {
        let mut events = incidents.iter();
        events.any(|(_, event)| matches!(event, Event::Ended(key) if key.0 == kind))
    };
    assert!(ended(recorded[0].0), "{incidents:?}");
}

#[test]
fn a_route_that_takes_twenty_times_as_long_is_an_incident_of_its_latency() {
    let mut shop = shop();
    shop[0].time = |at, random| random.exponential(if at < 40_000 { 0.03 } else { 0.6 });
    let incidents = incidents(&shop, 1, 41_000, |_, _, _| ());
    let recorded = recorded(&incidents);
    assert_eq!(recorded.len(), 1, "{incidents:?}");
    assert_eq!(recorded[0].0, Kind::Latency, "{incidents:?}");
    assert!((40_000..40_020).contains(&recorded[0].1), "{incidents:?}");
}

#[test]
fn a_machine_without_a_cpu_makes_requests_slow_and_is_no_incident() {
    let mut shop = shop();
    shop[0].time = |at, random| random.exponential(if at < 40_000 { 0.03 } else { 3.0 });
    let incidents = incidents(&shop, 1, 40_060, |_, _, second| second.cpu = Cpu::Lacked);
    assert!(recorded(&incidents).is_empty(), "{incidents:?}");
    assert!(
        incidents
            .iter()
            .all(|(_, event)| *event == Event::LackedCpu)
            && !incidents.is_empty(),
        "{incidents:?}"
    );
}

/// Step of the watcher.
const STEP: Duration = Duration::from_millis(25);

/// Lets a second of steps go by. The first of two workers is held from `held`; workers also do up to 30 ms of ordinary
/// work without yielding, and other programs take their CPU now and then.
fn steps(judge: &mut Judge, at: u64, held: std::ops::Range<usize>, random: &mut Random) {
    let runtime = Arc::from("main");
    for step in 0..40 {
        let now =
            SECOND * u32::try_from(at).expect("a day") + STEP * u32::try_from(step).expect("few");
        let is_held = held.contains(&step);
        // No two in a row.
        let works = step % 4 == 0 && random.next() < 0.1;
        let has_cpu = is_held || random.next() < 0.97;
        let cpu = match (judge.suspects_workers(), has_cpu) {
            (true, true) => Cpu::Had,
            (true, false) => Cpu::Lacked,
            (false, _) => Cpu::NotAsked,
        };
        judge.step(now, &runtime, &[is_held, works || !has_cpu], STEP, cpu);
    }
}

#[test]
fn each_stall_of_300_ms_is_an_incident_and_nothing_else_of_the_day_is() {
    let mut random = Random(9);
    let stall = |at: u64| if at % 600 == 599 { 20..32 } else { 0..0 };
    let incidents = incidents(&shop(), 1, DAY, |at, judge, _| {
        steps(judge, at, stall(at), &mut random);
    });
    let recorded = recorded(&incidents);
    let stalls: Vec<_> = (0..DAY).filter(|at| !stall(*at).is_empty()).collect();
    let times: Vec<_> = recorded.iter().map(|(_, at)| *at).collect();
    assert_eq!(times, stalls);
    assert!(recorded.iter().all(|(kind, _)| *kind == Kind::Late));
}

#[test]
fn a_deadlock_is_one_incident_that_does_not_end() {
    let mut random = Random(9);
    let incidents = incidents(&quiet(), 1, 7_200, |at, judge, _| {
        let held = if at < 3_600 { 0..0 } else { 0..40 };
        steps(judge, at, held, &mut random);
    });
    assert_eq!(recorded(&incidents), [(Kind::Late, 3_600)]);
    let mut events = incidents.iter();
    assert!(
        !events.any(|(_, event)| matches!(event, Event::Ended(_))),
        "{incidents:?}"
    );
}
