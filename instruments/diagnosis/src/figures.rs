//! Formats for figures that people read: as many digits as carry meaning.

use ecosystem::three_digits;

/// Milliseconds below which a time is not told exactly: a look samples too seldom for more.
const LEAST_TOLD_MS: f64 = 0.1;

/// Formats milliseconds with three digits: `51.2 s`, `512 ms`, `12.9 ms`.
pub(crate) fn duration(ms: f64) -> String {
    if ms < LEAST_TOLD_MS {
        return "less than 0.1 ms".to_owned();
    }
    let (value, unit) = scaled(ms);
    format!("{value} {unit}")
}

/// Formats a part of a duration, both in milliseconds: `45.0 of 51.2 ms`, `512 ms of 1.56 s`.
pub(crate) fn of(part_ms: f64, whole_ms: f64) -> String {
    let (part, part_unit) = scaled(part_ms);
    let (whole, unit) = scaled(whole_ms);
    if part_unit == unit {
        format!("{part} of {whole} {unit}")
    } else {
        format!("{part} {part_unit} of {whole} {unit}")
    }
}

/// Formats a number of things that is an average: `998`, `10.8`, `0.05`.
pub(crate) fn average(number: f64) -> String {
    let decimals = match number {
        none if none < 0.005 => 0,
        few if few < 0.1 => 2,
        some if some < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

/// Formats a whole number: `195`, `18,512`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns three digits of milliseconds, and the unit that they are in.
fn scaled(ms: f64) -> (String, &'static str) {
    let (value, unit) = if ms >= 999.5 {
        (ms / 1e3, "s")
    } else {
        (ms, "ms")
    };
    (three_digits(value), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_the_unit_that_they_need() {
        for (ms, text) in [
            (51_174.9, "51.2 s"),
            (1560.0, "1.56 s"),
            (999.7, "1.00 s"),
            (512.3, "512 ms"),
            (12.92, "12.9 ms"),
            (0.25, "0.25 ms"),
            (0.03, "less than 0.1 ms"),
        ] {
            assert_eq!(duration(ms), text);
        }
        assert_eq!(of(51_075.0, 51_180.2), "51.1 of 51.2 s");
        assert_eq!(of(512.0, 1560.0), "512 ms of 1.56 s");
    }

    #[test]
    fn numbers_have_no_more_digits_than_one_reads() {
        assert_eq!(
            [998.0, 10.84, 0.053, 0.0].map(average),
            ["998", "10.8", "0.05", "0"]
        );
        assert_eq!(
            [0, 195, 18_512, 1_000_000].map(count),
            ["0", "195", "18,512", "1,000,000"]
        );
    }
}
