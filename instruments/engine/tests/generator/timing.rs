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
        // Users whom the machine held up together come in waves, and the first and the last wave may put the rate a
        // little above 100.
        let rate = seen_of(|_, _| ok("6"), &load).requests_per_second;
        (rate > 50.0 && rate <= 100.5, rate)
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
    let mut load = load(10);
    load.warm_up = Duration::from_secs(1);
    once_in_three(|| {
        let start = Instant::now();
        let server = Server::start(move |_, _| {
            if start.elapsed() < Duration::from_millis(400) {
                late(300, "6")
            } else {
                ok("6")
            }
        });
        let outcome = send(server.address, &load);
        assert_eq!(outcome.per_second.len(), 1);
        let (completed, requests) = (outcome.completed, server.requests() as u64);
        let median = outcome.latency.at(0.5);
        let is_fast = median.is_some_and(|median| median < 200.0);
        let is_left_out = 0 < completed && completed < requests && is_fast;
        (is_left_out, (completed, requests, median))
    });
}

#[test]
fn an_open_loop_keeps_its_rate() {
    once_in_three(|| {
        let server = Server::start(|_, _| ok("6"));
        let start = Instant::now();
        let outcome = send(server.address, &open(20, 300.0, Duration::from_secs(1)));
        assert!(outcome.generator.open_loop);
        // A schedule, not a chain: the server gets the requests that were due since it began.
        let requests = server.requests();
        let due = 300.0 * start.elapsed().as_secs_f64() + 2.0;
        assert!(requests as f64 <= due, "{requests}");
        let rate = outcome.requests_per_second;
        (rate > 250.0 && rate < 350.0, rate)
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
        let corrected = outcome.latency.at(0.9).unwrap_or_default();
        let service = outcome.service_latency.unwrap();
        let uncorrected = service.at(0.9).unwrap_or_default();
        let longest = service.max_ms;
        // The stall may fall into the warm-up of a load that began late.
        let is_seen = corrected > 150.0 && longest >= 500.0;
        let all = format!("corrected {corrected}, uncorrected {uncorrected}, at most {longest} ms");
        (is_seen && uncorrected < corrected / 2.0, all)
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
