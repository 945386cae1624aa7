//! k6 and Locust as load generators. They are started with a chapter's script and load and watched, and their
//! machine-readable summaries are read into an [`Outcome`].

pub mod k6;
pub mod locust;

use std::time::Duration;

use children::tool::{DriverError, Ended, Settings};
use engine::outcome::{GeneratorFacts, GeneratorKind, Outcome};
use engine::traffic::{Arrivals, Traffic};

/// Largest count that a summary may contain. No run counts more, and `f64` holds every number up to it
/// exactly.
const MOST: u64 = 1 << 53;
/// Longest time that a summary may contain, in milliseconds: a day is longer than any run.
const LONGEST_MS: f64 = 86_400_000.0;

/// Returns the arguments of both tools' scripts: variables in capitals for k6, options for Locust. Figures
/// about bystanders stay in the scripts' thresholds. If `alone-ms` is 0, the scripts measure the latency
/// without load themselves.
fn told(
    load: &Traffic,
    settings: &Settings<'_>,
    think: Duration,
    warm_up: Duration,
) -> [(&'static str, f64); 6] {
    let write_share = match load.routes.get(1) {
        Some(writes) => writes.weight,
        None => 0.0,
    };
    let bystanders_per_second = match &load.bystander {
        Some(bystander) => bystander.per_second,
        None => 0.0,
    };
    let alone = settings.alone.unwrap_or_default();
    [
        ("think", think.as_secs_f64()),
        ("write-share", write_share),
        ("bystanders-per-second", bystanders_per_second),
        ("warm-up", warm_up.as_secs_f64()),
        ("time-out", load.time_out.as_secs_f64()),
        ("alone-ms", alone.as_secs_f64() * 1000.0),
    ]
}

/// Returns the think time of a load, if `tool` can send that load.
fn think(tool: &'static str, load: &Traffic) -> Result<Duration, DriverError> {
    match load.arrivals {
        Arrivals::Closed { think } => Ok(think),
        Arrivals::Open { .. } => {
            let what = "the workshop's scripts know closed loops only";
            Err(DriverError::load(tool, what))
        }
    }
}

/// Returns the part of an outcome that both tools share: `completed` right answers to `users` in `seconds`.
fn outcome(
    ended: &Ended,
    (name, version): (GeneratorKind, String),
    users: u32,
    completed: u64,
    seconds: f64,
) -> Outcome {
    let requests_per_second = if seconds > 0.0 {
        completed as f64 / seconds
    } else {
        0.0
    };
    Outcome {
        exit_code: ended.exit_code,
        generator: GeneratorFacts {
            name,
            version,
            cpu_share: ended.cpu_share,
            waited_share: ended.waited_share,
            users,
            open_loop: false,
            arrivals: None,
        },
        seconds,
        completed,
        requests_per_second,
        ..Outcome::default()
    }
}

/// Returns the outcome from a tool's summary, unless the tool cannot have measured it.
fn checked(tool: &'static str, outcome: Outcome) -> Result<Outcome, DriverError> {
    match contradiction(&outcome) {
        None => Ok(outcome),
        Some(what) => Err(DriverError::summary(tool)(what)),
    }
}

fn contradiction(outcome: &Outcome) -> Option<&'static str> {
    let latency = &outcome.latency;
    let mut counted = outcome.completed.saturating_add(outcome.wrong_answers);
    for count in outcome.errors.values().chain(&outcome.per_second) {
        counted = counted.saturating_add(*count);
    }
    if counted > MOST {
        return Some("it counts more than anybody can send");
    }
    let whole_ms = outcome.seconds * 1000.0;
    let mut times = vec![latency.mean_ms, latency.min_ms, latency.max_ms, whole_ms];
    times.extend(latency.quantiles.iter().map(|(_, ms)| *ms));
    times.retain(|ms| !(0.0..=LONGEST_MS).contains(ms));
    if !times.is_empty() || !outcome.requests_per_second.is_finite() {
        return Some("a time in it is none: below zero, or longer than a day");
    }
    // The mean is a sum that was rounded at each answer.
    let near = 1e-6 * latency.max_ms;
    if latency.mean_ms < latency.min_ms - near || latency.mean_ms > latency.max_ms + near {
        return Some("its mean is not between its least and its greatest latency");
    }
    let (last, _) = latency.quantiles.last()?;
    let mut is_rising = *last >= 1.0;
    for (share, _) in &latency.quantiles {
        is_rising &= (0.0..=1.0).contains(share);
    }
    for pair in latency.quantiles.windows(2) {
        is_rising &= pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
    }
    if is_rising {
        return None;
    }
    Some("its percentiles do not rise to the last answer's")
}

#[cfg(test)]
mod tests {
    use crate::measurement::load::Exchange;

    use super::*;

    #[test]
    fn a_damaged_summary_is_refused_or_can_be_calculated_with() {
        let load = Exchange::get("/read", "6").by(200);
        for (tool, folder) in [
            ("k6", "tests/k6-summaries"),
            ("Locust", "tests/locust-summaries"),
        ] {
            let mut read = 0;
            for summary in damaged_summaries(folder) {
                let ended = Ended {
                    summary,
                    exit_code: Some(0),
                    ..Ended::default()
                };
                let outcome = match tool {
                    "k6" => k6::read(&ended, String::new(), &load),
                    _ => locust::read(200, &ended),
                };
                match outcome {
                    Ok(outcome) => {
                        read += 1;
                        is_a_measurement(&outcome);
                    }
                    Err(error) => {
                        let begin = format!("{tool}'s summary cannot be read: ");
                        assert!(error.to_string().starts_with(&begin), "{error}");
                    }
                }
            }
            assert!(read > 10, "only {read} of {tool} were read");
        }
    }

    #[track_caller]
    fn is_a_measurement(outcome: &Outcome) {
        let latency = &outcome.latency;
        let of_all = [latency.mean_ms, latency.min_ms, latency.max_ms];
        let quantiles = latency.quantiles.iter().flat_map(|&(q, ms)| [q, ms]);
        let whole = [outcome.seconds, outcome.requests_per_second];
        for figure in of_all.into_iter().chain(quantiles).chain(whole) {
            assert!(figure.is_finite() && figure >= 0.0, "{figure}");
        }
        assert!(latency.at(0.5) <= latency.at(0.99));
        assert!(outcome.error_count() <= MOST);
    }

    /// Collects the summaries in a folder, with damaged copies: each number in turn is replaced by others,
    /// and each name in turn is changed.
    fn damaged_summaries(folder: &str) -> Vec<String> {
        const VALUES: &str = "0 -1 0.5 1e308 9007199254740993 18446744073709551615 null \"1\" []";
        let mut all = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let whole = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for (at, _) in whole.match_indices(": ") {
                let (before, value) = whole.split_at(at + 2);
                let end = value.find([',', '\n', '}', '{', '[']).unwrap();
                let with = |other| format!("{before}{other}{}", &value[end..]);
                all.extend(VALUES.split(' ').map(with));
                all.push(format!("{}x{}", &whole[..at - 1], &whole[at - 1..]));
            }
            all.push(whole);
        }
        all
    }
}
