//! Limits of the length and the samples of one profile.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::EndpointError;

/// Longest profile that one request may ask for, in seconds.
pub(crate) const LONGEST_SECONDS: f64 = 600.0;

/// Most samples of one profile. One of an await profile takes up to 170 bytes; of a CPU profile, only different stacks
/// take memory.
const MOST_SAMPLES: f64 = 1e6;

/// Returns the duration of a profile, or an error if it is out of bounds.
pub(crate) fn checked_duration(seconds: f64) -> Result<Duration, EndpointError> {
    if seconds > 0.0 && seconds <= LONGEST_SECONDS {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(EndpointError::BadRequest(format!(
            "seconds must be over 0 and at most {LONGEST_SECONDS}, not {seconds}"
        )))
    }
}

/// Checks that `rate` is within `bounds`, and that all samples of `duration` on `cpus` are not too many.
pub(crate) fn within(
    bounds: RangeInclusive<u32>,
    rate: u32,
    name: &str,
    duration: Duration,
    cpus: usize,
) -> Result<(), EndpointError> {
    if !bounds.contains(&rate) {
        return Err(EndpointError::BadRequest(format!(
            "{name} must be from {} to {} a second, not {rate}",
            bounds.start(),
            bounds.end()
        )));
    }
    let seconds = duration.as_secs_f64();
    let samples = f64::from(rate) * seconds * cpus as f64;
    if samples <= MOST_SAMPLES {
        return Ok(());
    }
    let on = if cpus > 1 {
        format!(" on {cpus} CPUs")
    } else {
        String::new()
    };
    let longest = (seconds * MOST_SAMPLES / samples).floor();
    Err(EndpointError::BadRequest(format!(
        "{name}={rate} for {seconds} seconds{on} may be {samples:.0} samples, and one profile has at most \
         {MOST_SAMPLES:.0}: ask for at most {longest} seconds, or for a lower {name}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_bounded_by_rate_time_and_cpus_together() {
        let ask = |rate, seconds, cpus| {
            let checked = within(
                1..=100_000,
                rate,
                "captures",
                Duration::from_secs(seconds),
                cpus,
            );
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(ask(200, 600, 1), Ok(()));
        assert_eq!(ask(100_000, 10, 1), Ok(()));
        let error = ask(100_000, 600, 1).expect_err("60 million");
        assert!(error.contains("at most 10 seconds"), "{error}");
        assert_eq!(ask(99, 600, 16), Ok(()));
        let error = ask(99, 600, 64).expect_err("nearly 4 million");
        assert!(
            error.contains("on 64 CPUs") && error.contains("at most 157 seconds"),
            "{error}"
        );
    }
}
