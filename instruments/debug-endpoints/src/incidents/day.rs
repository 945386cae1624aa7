//! Hours of a service in virtual time: what is an incident, and what is not.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::incidents::condition::Cpu;
use crate::incidents::judge::{Event, Judge, Second};
use crate::incidents::kind::Kind;
use crate::incidents::latency::{FEWEST, RouteSeen};
use crate::incidents::options::Incidents;

const SECOND: Duration = Duration::from_secs(1);
const DAY: u64 = 86_400;

/// Limit for the 99th percentile.
const LIMIT: Duration = Duration::from_millis(500);

/// Lets so many seconds go by, and returns the incidents. `at_second` makes what is seen.
fn incidents(
    options: Incidents,
    seconds: u64,
    mut at_second: impl FnMut(u64, &mut Judge, &mut Second),
) -> Vec<(u64, Event)> {
    let mut judge = Judge::new(options);
    let mut incidents = Vec::new();
    for at in 0..seconds {
        let mut second = Second {
            routes: Vec::new(),
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

/// Returns the sentence of the only incident, and the second at which it ended.
fn only_one(incidents: &[(u64, Event)]) -> (&str, u64) {
    let [
        (_, Event::Counted(_)),
        (_, Event::Recorded { says, .. }),
        (end, Event::Ended(_)),
    ] = incidents
    else {
        panic!("not one incident that ended: {incidents:?}");
    };
    (says, *end)
}

fn route(answered: u64, p99_ms: u64, slow_in_flight: u64) -> RouteSeen {
    RouteSeen {
        name: Arc::from("GET /item"),
        answered,
        p99: (answered > 0).then(|| Duration::from_millis(p99_ms)),
        slow_in_flight,
    }
}

/// Returns the incidents of a service whose p99 is 812 ms for half a minute of ten.
fn slow_for_half_a_minute(options: Incidents, answered: u64, cpu: Cpu) -> Vec<(u64, Event)> {
    incidents(options, 600, |at, _, second| {
        let p99 = if (300..330).contains(&at) { 812 } else { 120 };
        second.routes.push(route(answered, p99, 0));
        second.cpu = cpu;
    })
}

#[test]
fn a_p99_over_the_limit_is_one_incident_with_both_in_its_sentence() {
    let limit = Incidents::new().p99_limit(LIMIT);
    let incidents = slow_for_half_a_minute(limit, FEWEST, Cpu::Had);
    let says = "The p99 of GET /item was 812 ms over the last minute; its limit is 500 ms.";
    assert_eq!(only_one(&incidents), (says, 330));
    assert_eq!(recorded(&incidents), [(Kind::Latency, 301)]);
}

#[test]
fn a_p99_within_the_limit_or_of_few_requests_or_without_a_limit_is_no_incident() {
    let within = Incidents::new().p99_limit(Duration::from_millis(900));
    let limit = Incidents::new().p99_limit(LIMIT);
    for (options, answered, what) in [
        (within, 10_000, "within the limit"),
        (limit, FEWEST - 1, "few requests"),
        (Incidents::new(), 10_000, "no limit"),
    ] {
        let incidents = slow_for_half_a_minute(options, answered, Cpu::Had);
        assert!(incidents.is_empty(), "{what}: {incidents:?}");
    }
}

#[test]
fn requests_that_hang_are_one_incident_until_they_are_answered() {
    let limit = Incidents::new().p99_limit(LIMIT);
    let incidents = incidents(limit, 600, |at, _, second| {
        // A minute later, no request of the time before is known any more.
        let answered = if (300..360).contains(&at) || at >= 400 {
            300
        } else {
            0
        };
        let hanging = if (300..400).contains(&at) { 12 } else { 0 };
        second.routes.push(route(answered, 120, hanging));
    });
    let says = "12 of 312 timed requests of GET /item have been in flight for longer than 500 ms, the limit of its p99.";
    assert_eq!(only_one(&incidents), (says, 400));
}

#[test]
fn a_route_that_the_profiler_forgets_ends_its_incident() {
    let limit = Incidents::new().p99_limit(LIMIT);
    let incidents = incidents(limit, 60, |at, _, second| {
        if at < 30 {
            second.routes.push(route(FEWEST, 812, 0));
        }
    });
    assert_eq!(only_one(&incidents).1, 30);
}

#[test]
fn a_machine_without_a_cpu_makes_requests_slow_and_is_no_incident() {
    let limit = Incidents::new().p99_limit(LIMIT);
    let incidents = slow_for_half_a_minute(limit, FEWEST, Cpu::Lacked);
    assert_eq!(incidents, [(301, Event::LackedCpu)]);
}

/// Step of the watcher.
const STEP: Duration = Duration::from_millis(25);

/// Lets a second of steps go by. The first of two workers is held from `held`; workers also do up to 30 ms of ordinary
/// work without yielding, and other programs take their CPU now and then.
fn steps(judge: &mut Judge, at: u64, held: std::ops::Range<usize>, random: &mut Rng) {
    let runtime = Arc::from("main");
    for step in 0..40 {
        let now =
            SECOND * u32::try_from(at).expect("a day") + STEP * u32::try_from(step).expect("few");
        let is_held = held.contains(&step);
        // No two in a row.
        let works = step % 4 == 0 && random.f64() < 0.1;
        let has_cpu = is_held || random.f64() < 0.97;
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
    let mut random = Rng::with_seed(9);
    let stall = |at: u64| if at % 600 == 599 { 20..32 } else { 0..0 };
    let incidents = incidents(Incidents::new(), DAY, |at, judge, _| {
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
    let mut random = Rng::with_seed(9);
    let incidents = incidents(Incidents::new(), 7_200, |at, judge, _| {
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
