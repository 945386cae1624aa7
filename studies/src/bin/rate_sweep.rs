//! Rates at which a service begins to make its requests wait, and the requests that wait: `rate-sweep.md`.
//!
//! Chapter 5's problem and solution are asked for work on a schedule, even or random, at a rate that
//! rises in steps, and for pings beside it. Each step has a server of its own, so that none inherits the queue of the
//! one before. With random arrivals the problem's mean stands beside the one that Pollaczek and Khinchine predict.
//!
//! `cargo run -p studies --bin rate_sweep -- 5 [random [SEED]]` (seconds; a seed repeats a run's moments)

use std::fmt::Write as _;
use std::time::Duration;

use course::measurement::load::Exchange;
use engine::outcome::Latency;
use engine::placement::Placement;
use engine::traffic::{Arrivals, Paced, Spacing, Traffic};
use statistics::figures;
use studies::Failed;

/// The published rates, in larger steps.
const RATES: [u32; 12] = [20, 50, 80, 110, 140, 170, 200, 230, 260, 290, 320, 350];
const VARIANTS: [&str; 2] = ["problem", "solution"];
/// Enough connections that no request waits for one.
const CONNECTIONS: u32 = 1_000;
const PINGS_PER_SECOND: f64 = 100.0;

fn main() -> Result<(), Failed> {
    let seconds = studies::argument(1, 5)?;
    let arrivals: String = studies::argument(2, "even".to_owned())?;
    let spacing = match arrivals.as_str() {
        "even" => Spacing::Even,
        "random" => Spacing::Poisson,
        other => return Err(format!("arrivals are `even` or `random`, not `{other}`").into()),
    };
    let seed = studies::argument(3, fastrand::u64(..1_000_000))?;
    studies::compile(&[5])?;
    let placement = Placement::apart();
    // The formula is for random arrivals.
    let service_s = match spacing {
        Spacing::Poisson => Some(alone(&placement)?),
        Spacing::Even => None,
    };
    let mut heads = String::from("| asked per second |");
    let mut rule = String::from("| ---: |");
    for variant in VARIANTS {
        let _ = write!(
            heads,
            " {variant}: answered per second | {variant}, request | {variant}, ping |"
        );
        rule += " ---: | ---: | ---: |";
    }
    if service_s.is_some() {
        heads += " problem: mean | predicted mean |";
        rule += " ---: | ---: |";
    }
    println!("{heads}\n{rule}");
    for rate in RATES {
        print!("| {rate} |");
        let mut means = String::new();
        for variant in VARIANTS {
            let server = studies::start(5, variant, &placement.server, &[])?;
            let load = Traffic {
                arrivals: Arrivals::Open {
                    per_second: rate.into(),
                    spacing,
                },
                bystander: Some(Paced {
                    route: Exchange::get("/ping", "pong").route(1.0),
                    per_second: PINGS_PER_SECOND,
                    spacing: Spacing::Even,
                }),
                warm_up: Duration::from_secs(1),
                duration: Duration::from_secs(seconds),
                // Both variants get the same moments, and each rate has others.
                seed: seed + u64::from(rate),
                ..Exchange::get("/data", "4").by(CONNECTIONS)
            };
            let outcome = studies::load(&server, &load, &placement.generator)?;
            let pings = outcome.bystander.as_ref().ok_or("nobody asked for pings")?;
            print!(
                " {} | {} | {} |",
                figures::count(outcome.requests_per_second.round()),
                p99(&outcome.latency),
                p99(&pings.latency),
            );
            if let Some(service_s) = service_s
                && variant == "problem"
            {
                let sent = outcome.completed + outcome.unfinished;
                let per_second = sent as f64 / outcome.seconds;
                means = format!(
                    " {} | {} |",
                    figures::milliseconds(outcome.latency.mean_ms),
                    match mean_in_queue_and_service(per_second, service_s) {
                        Some(predicted) => figures::milliseconds(predicted * 1e3),
                        None => "none: the queue grows".to_owned(),
                    }
                );
            }
        }
        println!("{means}");
    }
    let drawn = match service_s {
        Some(service_s) => format!(
            " by seed {seed}; predicted of {:.2} ms, the mean of one user alone",
            service_s * 1e3
        ),
        None => String::new(),
    };
    studies::print_provenance(&format!(
        "99th percentiles, counted from the due moment, of {seconds} s at each rate, {arrivals} \
         arrivals{drawn}, beside {PINGS_PER_SECOND} pings a second"
    ));
    Ok(())
}

/// Mean time of the problem's answer in seconds when one user asks: the service time.
fn alone(placement: &Placement) -> Result<f64, Failed> {
    let server = studies::start(5, "problem", &placement.server, &[])?;
    let load = Traffic {
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(3),
        ..Exchange::get("/data", "4").by(1)
    };
    let outcome = studies::load(&server, &load, &placement.generator)?;
    Ok(outcome.latency.mean_ms / 1e3)
}

/// Mean time in seconds from arrival to answer with one server, random arrivals and equal service times: Pollaczek and
/// Khinchine's formula for M/D/1 (L. Kleinrock, *Queueing Systems*, volume 1, 1975, section 5.6). `None` where requests
/// arrive faster than they can be answered.
fn mean_in_queue_and_service(per_second: f64, service_s: f64) -> Option<f64> {
    let utilisation = per_second * service_s;
    if utilisation < 1.0 {
        Some(service_s * (1.0 + utilisation / (2.0 * (1.0 - utilisation))))
    } else {
        None
    }
}

/// The 99th percentile, or what it is above where too many requests had no answer at the end.
fn p99(latency: &Latency) -> String {
    let is_bound = match latency.point(0.99) {
        Some(p99) => p99.is_lower_bound,
        None => false,
    };
    let over = figures::over(is_bound);
    format!("{over}{}", studies::milliseconds(latency.at(0.99)))
}

#[cfg(test)]
mod tests {
    use super::mean_in_queue_and_service;

    #[test]
    fn a_server_that_is_busy_half_of_the_time_makes_a_request_wait_for_half_of_a_service() {
        let mean = mean_in_queue_and_service(125.0, 0.004).unwrap();
        assert!((mean - 0.006).abs() < 1e-12);
        assert_eq!(mean_in_queue_and_service(250.0, 0.004), None);
    }
}
