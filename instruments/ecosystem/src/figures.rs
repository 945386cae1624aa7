//! Formats for figures that people read: as many digits as carry meaning.

const KIB: f64 = 1024.0;
/// Milliseconds below which a time is not told exactly: a look samples too seldom for more.
const LEAST_TOLD_MS: f64 = 0.1;

/// Returns the word in front of a figure that is a lower bound, and an empty text for any other.
pub fn over(is_lower_bound: bool) -> &'static str {
    if is_lower_bound { "over " } else { "" }
}

/// Formats a ratio, such as `925`, `12.5` or `1.43`.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    match value.abs() {
        size if size >= 99.95 => grouped(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 || size == 0.0 => format!("{value:.2}"),
        size => {
            // Two digits that carry meaning, wherever they begin.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small, positive
            let decimals = (1.0 - size.log10().floor()).min(9.0) as usize;
            format!("{value:.decimals$}")
        }
    }
}

/// Formats a ratio in which larger is better, such as `925 times better` or `1.25 times worse`.
pub fn gain(ratio_to_one: f64) -> String {
    if ratio_to_one < 1.0 {
        format!("{} times worse", ratio(ratio_to_one.recip()))
    } else {
        format!("{} times better", ratio(ratio_to_one))
    }
}

/// Formats a number of things, such as `1 error` or `1,200 errors`.
pub fn things(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(number as f64))
}

/// Formats a count or a rate, such as `18,512`, `19.5` or `0.05`: whole numbers stay whole.
pub fn count(value: f64) -> String {
    if value.is_finite() && (value - value.round()).abs() < 1e-9 {
        grouped(value)
    } else {
        let text = ratio(value);
        let kept = text.trim_end_matches('0').trim_end_matches('.');
        if text.contains('.') {
            kept.to_owned()
        } else {
            text
        }
    }
}

/// Formats a share between 0 and 1 as `4.2 %`, or as `97 %` from ten percent on. A share just below the whole is not
/// rounded up to it.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        "an unknown share".to_owned()
    } else if (99.5..99.95).contains(&value) {
        format!("{value:.1} %")
    } else if (99.95..100.0).contains(&value) {
        "over 99.9 %".to_owned()
    } else if value.abs() >= 9.95 {
        format!("{} %", grouped(value))
    } else {
        format!("{value:.1} %")
    }
}

/// Formats a share as a percentage, with more digits near the whole, where they matter.
pub fn share(share: f64) -> String {
    if share > 0.99 && share < 1.0 {
        // Rounded down: 99.996 % is not all.
        format!("{:.2} %", (share * 10_000.0).floor() / 100.0)
    } else if share.is_finite() {
        format!("{:.1} %", share * 100.0)
    } else {
        "unknown".to_owned()
    }
}

/// Formats a size for people, such as `171 MiB`, `1.5 GiB` or `512 bytes`.
pub fn bytes(value: f64) -> String {
    match value.abs() {
        size if size >= KIB * KIB * KIB => format!("{} GiB", ratio(value / (KIB * KIB * KIB))),
        size if size >= KIB * KIB => format!("{} MiB", grouped(value / (KIB * KIB))),
        size if size >= KIB => format!("{} KiB", grouped(value / KIB)),
        _ => format!("{} bytes", count(value)),
    }
}

/// Formats a time in milliseconds as `0.45 ms`, `51.2 ms`, `888 ms` or `18.2 s`.
pub fn milliseconds(value: f64) -> String {
    if value >= 999.5 {
        format!("{} s", ratio(value / 1e3))
    } else {
        format!("{} ms", ratio(value))
    }
}

/// Formats milliseconds with three digits: `51.2 s`, `512 ms`, `12.9 ms`.
pub fn duration(ms: f64) -> String {
    if ms < LEAST_TOLD_MS {
        return "less than 0.1 ms".to_owned();
    }
    let (value, unit) = scaled(ms);
    format!("{value} {unit}")
}

/// Formats a part of a duration, both in milliseconds: `45.0 of 51.2 ms`, `512 ms of 1.56 s`.
pub fn of(part_ms: f64, whole_ms: f64) -> String {
    let (part, part_unit) = scaled(part_ms);
    let (whole, unit) = scaled(whole_ms);
    if part_unit == unit {
        format!("{part} of {whole} {unit}")
    } else {
        format!("{part} {part_unit} of {whole} {unit}")
    }
}

/// Formats a number of things that is an average: `998`, `10.8`, `0.05`.
pub fn average(number: f64) -> String {
    let decimals = match number {
        none if none < 0.005 => 0,
        few if few < 0.1 => 2,
        some if some < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

/// Formats a number that is not negative with three digits, and with no fewer than those of its whole part: `51.2`,
/// `1.56`, `512`, `7200`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value {
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
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

/// Formats a figure rounded to a whole number, with a comma every three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let negative = value < 0.0 && digits != "0";
    if negative { format!("-{text}") } else { text }
}

/// Reads a displayed figure, the reverse of what this file writes. Returns it in seconds, in bytes, as a share or as it
/// is; `None` for text.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim_matches('`');
    // A lower bound: `over 3.2 s`.
    let text = text.strip_prefix("over ").unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '-'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value: f64 = digits.replace(',', "").parse().ok()?;
    let base = match unit.trim() {
        "" | "x" | "s" | "bytes" | "times" => value,
        "%" => value / 100.0,
        "ms" => value / 1e3,
        "µs" => value / 1e6,
        "ns" => value / 1e9,
        "KiB" => value * KIB,
        "MiB" => value * KIB * KIB,
        "GiB" => value * KIB * KIB * KIB,
        // A cell of a table may say more: `310 (0.53x)`.
        more if more.starts_with('(') => value,
        _ => return None,
    };
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_the_digits_that_carry_meaning() {
        type Way = fn(f64) -> String;
        let ways: [(Way, &[(f64, &str)]); 5] = [
            (
                ratio,
                &[
                    (1.4349, "1.43"),
                    (9.999, "10.0"),
                    (99.99, "100"),
                    (18_512.3, "18,512"),
                    (f64::NAN, "unknown"),
                ],
            ),
            (
                gain,
                &[
                    (925.2, "925 times better"),
                    (1.0, "1.00 times better"),
                    (0.8, "1.25 times worse"),
                    (f64::NAN, "unknown times better"),
                ],
            ),
            (
                count,
                &[
                    (-0.0, "0"),
                    (1_234_567.0, "1,234,567"),
                    (0.5, "0.5"),
                    (0.004_13, "0.0041"),
                    (f64::INFINITY, "unknown"),
                ],
            ),
            (
                percent,
                &[
                    (0.042, "4.2 %"),
                    (0.0996, "10 %"),
                    (0.9985, "99.9 %"),
                    (0.9999, "over 99.9 %"),
                    (1.0, "100 %"),
                    (f64::NAN, "an unknown share"),
                ],
            ),
            (
                milliseconds,
                &[(0.4512, "0.45 ms"), (888.0, "888 ms"), (18_200.0, "18.2 s")],
            ),
        ];
        for (way, figures) in ways {
            for (value, text) in figures {
                assert_eq!(way(*value), *text);
            }
        }
        assert_eq!(things(1, "error"), "1 error");
        assert_eq!(things(1_200, "error"), "1,200 errors");
    }

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
            [0.0, 195.0, 18_512.0, 1_000_000.0].map(count),
            ["0", "195", "18,512", "1,000,000"]
        );
    }

    #[test]
    fn a_number_that_is_rounded_up_has_three_digits_still() {
        let numbers = [1.56, 9.994, 9.996, 51.2, 99.94, 99.96, 7200.0].map(three_digits);
        assert_eq!(
            numbers,
            ["1.56", "9.99", "10.0", "51.2", "99.9", "100", "7200"]
        );
    }

    #[test]
    fn a_shown_figure_is_a_number_in_base_units() {
        for (text, value) in [
            ("152 ms", 0.152),
            ("48 %", 0.48),
            ("3,294 µs", 0.003_294),
            ("171 MiB", 179_306_496.0),
            ("25,176", 25_176.0),
            ("over 99.9 %", 0.999),
            ("11x", 11.0),
            ("310 (0.53x)", 310.0),
            ("-3.5 %", -0.035),
        ] {
            let number = number(text).unwrap();
            assert!(
                (number - value).abs() < 1e-9 * value.abs(),
                "{text}: {number}"
            );
        }
        for text in [
            "proved",
            "2026-11-21",
            "unknown",
            "`b0d1e3a6db98`",
            "3 → 4",
            "",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
