//! Outcome of one load, for people and as an exit code.

use std::time::Duration;

use engine::outcome::{Latency, MISSED, Outcome};
use engine::traffic::Spacing;
use statistics::figures;

use crate::exit::Exit;

/// Returns the exit code of a load. It is good only if all requests got right answers, and none was left waiting. A
/// wrong answer is the service's fault, however busy the generator was; a missing one may be the generator's.
pub fn exit_of(outcome: &Outcome) -> Exit {
    if outcome.wrong_answers > 0 || outcome.errors.keys().any(|cause| is_of_service(cause)) {
        Exit::Bad
    } else if outcome.generator.is_bound() || outcome.completed == 0 {
        Exit::Invalid
    } else if outcome.error_count() == 0 && outcome.unanswered.is_none() {
        Exit::Good
    } else {
        Exit::Bad
    }
}

/// Returns whether the cause of an error is what the service answered.
fn is_of_service(cause: &str) -> bool {
    cause.starts_with("status ")
        || cause.starts_with("grpc-status ")
        || cause.starts_with("invalid: ")
}

/// Formats the latency at `quantile` (0 to 1).
fn at(latency: &Latency, quantile: f64) -> String {
    match latency.point(quantile) {
        Some(found) => {
            let over = figures::over(found.is_lower_bound);
            format!("{over}{:.1} ms", found.ms)
        }
        None => "-".to_owned(),
    }
}

/// Formats the figures for people.
pub fn figures_of(outcome: &Outcome) -> String {
    let latency = |quantile| at(&outcome.latency, quantile);
    let time = Duration::from_secs_f64(outcome.seconds);
    let mut lines = vec![
        format!(
            "{} requests/s over {:.1} s: {} right answers, {} wrong, {} failed{}, {} unfinished",
            figures::count(outcome.completed as f64 / outcome.seconds),
            time.as_secs_f64(),
            outcome.completed,
            outcome.wrong_answers,
            outcome.error_count(),
            if outcome.wrong_answers + outcome.error_count() > 0 {
                " (warm-up included)"
            } else {
                ""
            },
            outcome.unfinished,
        ),
        format!(
            "latency: median {}, 90 % {}, 99 % {}, mean {}{:.1} ms ({} loop)",
            latency(0.5),
            latency(0.9),
            latency(0.99),
            figures::over(outcome.latency.lower_bound_from.is_some()),
            outcome.latency.mean_ms,
            match (outcome.generator.open_loop, outcome.generator.arrivals) {
                (false, _) => "closed",
                (true, Some(Spacing::Poisson)) => "random arrivals, open",
                (true, _) => "open",
            },
        ),
    ];
    if let Some(bystander) = &outcome.bystander {
        lines.push(format!(
            "bystanders: {} right answers, {} wrong, {} failed, {} unfinished; median {}, 99 % {} (open loop)",
            bystander.completed,
            bystander.wrong_answers,
            bystander.errors.values().sum::<u64>(),
            bystander.unfinished,
            at(&bystander.latency, 0.5),
            at(&bystander.latency, 0.99),
        ));
    }
    for (phase, number) in outcome.phases.iter().zip(1..) {
        lines.push(format!(
            "phase {number}, {:.1} s: {} requests, {} answered in time ({}/s); {} retries, {} given up, {} refused, {} \
             unsent",
            phase.seconds,
            phase.first_attempts,
            phase.in_time,
            figures::count(phase.goodput().round()),
            phase.retries,
            phase.given_up,
            phase.refused,
            phase.unsent,
        ));
    }
    for (cause, count) in &outcome.errors {
        lines.push(format!("failed: {count} x {cause}"));
    }
    if let Some(unanswered) = &outcome.unanswered {
        lines.push(unanswered.to_string());
    }
    if let Some(wrong) = &outcome.first_wrong_answer {
        lines.push(match &outcome.first_wrong_request {
            Some(request) => format!("first wrong answer, to {request}: {wrong}"),
            None => format!("first wrong answer: {wrong}"),
        });
    }
    if let Some(code) = outcome.exit_code {
        lines.push(match code {
            0 => "the script's thresholds: kept, exit code 0".to_owned(),
            MISSED => format!("the script's thresholds: missed, exit code {MISSED}"),
            other => format!("the script ended with exit code {other}"),
        });
    }
    if let Some(share) = outcome.generator.cpu_share {
        let bound = if outcome.generator.is_bound() {
            ": GENERATOR-BOUND, these figures describe it and not the server"
        } else {
            ""
        };
        lines.push(format!(
            "generator used {:.0} % of its CPUs{bound}",
            share * 100.0
        ));
    }
    lines.join("\n") + "\n"
}
