//! Moments at which requests are sent, and from which their latencies count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::load::ramp;
use engine::traffic::{Arrivals, Spacing, Traffic};

use crate::server::{Server, late, ok};
use crate::{load, once_in_three, seen_of, send, thinking};

fn open(users: u32, per_second: f64, duration: Duration) -> Traffic {
    Traffic {
        arrivals: Arrivals::Open {
            per_second,
            spacing: Spacing::Even,
        },
        duration,
        ..load(users)
    }
}

#[test]
fn users_think() {
    let mut load = thinking(10, Duration::from_millis(100));
    load.duration = Duration::from_secs(1);
    once_in_three(|| {
        let rate = seen_of(|_, _| ok("6"), &load).requests_per_second;
        assert!(rate <= 100.5, "{rate}");
        (rate > 50.0, rate)
    });
}

#[test]
fn users_come_one_after_the_other() {
    let half = Duration::from_millis(500);
    assert_eq!(ramp(&thinking(3000, half)), half);
    let many = thinking(10_000, Duration::ZERO);
    assert_eq!(ramp(&many), Duration::from_secs(1));
    let mut load = thinking(50, Duration::from_secs(1));
    load.warm_up = Duration::ZERO;
    load.duration = Duration::from_millis(10);
    once_in_three(|| {
        // Each user's first request brings the number of the tenth of a second it came in.
        let start = Instant::now();
        let tenths: &'static [AtomicBool] =
            Box::leak((0..100).map(|_| AtomicBool::new(false)).collect());
        let react = move |_, _: &str| {
            let tenth = usize::try_from(start.elapsed().as_millis() / 100).unwrap();
            tenths[tenth.min(99)].store(true, Ordering::Relaxed);
            ok("6")
        };
        seen_of(react, &load);
        let tenths = tenths.iter().filter(|tenth| tenth.load(Ordering::Relaxed));
        let busy = tenths.count();
        (busy >= 5, format!("within {busy} tenths of a second"))
    });
}

#[test]
fn the_warm_up_is_not_recorded() {
    let start = Instant::now();
    let server = Server::start(move |_, _| {
        if start.elapsed() < Duration::from_millis(400) {
            late(300, "6")
        } else {
            ok("6")
        }
    });
    let mut load = load(10);
    load.warm_up = Duration::from_secs(1);
    let outcome = send(server.address, &load);
    assert!(outcome.completed > 0);
    assert!((server.requests() as u64) > outcome.completed);
    assert!(outcome.latency.at(0.5).unwrap() < 200.0);
    assert_eq!(outcome.per_second.len(), 1);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    once_in_three(|| {
        let server = Server::start(|_, _| ok("6"));
        let outcome = send(server.address, &open(20, 300.0, Duration::from_secs(1)));
        assert!(outcome.generator.open_loop);
        // A schedule, not a chain: the server gets the requests that were due since it began.
        let due = 300.0 * 1.1 + 2.0;
        assert!(server.requests() as f64 <= due, "{}", server.requests());
        let rate = outcome.requests_per_second;
        assert!(rate < 350.0, "{rate}");
        (rate > 250.0, rate)
    });
}

#[test]
fn a_stall_is_charged_to_all_who_had_to_wait() {
    once_in_three(|| {
        // Everything stands still once for 600 ms: four users see it, three hundred were due.
        let stalled = AtomicBool::new(false);
        let start = Instant::now();
        let react = move |_, _: &str| {
            let is_time = start.elapsed() > Duration::from_millis(400);
            if is_time && !stalled.swap(true, Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(600));
            }
            ok("6")
        };
        let outcome = seen_of(react, &open(4, 500.0, Duration::from_millis(1800)));
        let corrected = outcome.latency.at(0.9).unwrap();
        let service = outcome.service_latency.unwrap();
        let (uncorrected, longest) = (service.at(0.9).unwrap(), service.max_ms);
        // The stall may fall into the warm-up of a load that began late.
        let is_seen = corrected > 150.0 && longest >= 500.0;
        let all = format!("corrected {corrected}, uncorrected {uncorrected}, at most {longest} ms");
        assert!(!is_seen || uncorrected < corrected / 2.0, "{all}");
        (is_seen, all)
    });
}

#[test]
fn more_than_the_server_can_is_unfinished_at_the_end() {
    // Two users at 50 ms each: 40 a second, of the 400 that are due.
    let load = open(2, 400.0, Duration::from_secs(1));
    once_in_three(|| {
        let outcome = seen_of(|_, _| late(50, "6"), &load);
        assert!(outcome.requests_per_second < 45.0);
        let (unfinished, longest) = (outcome.unfinished, outcome.latency.max_ms);
        (unfinished > 200 && longest > 400.0, (unfinished, longest))
    });
}
