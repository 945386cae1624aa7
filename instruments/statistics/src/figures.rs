//! Formats for figures that people read: as many digits as carry meaning.

const KIB: f64 = 1024.0;

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
