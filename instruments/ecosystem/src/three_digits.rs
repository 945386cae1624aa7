//! Numbers as people read them.

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

#[cfg(test)]
mod tests {
    use super::three_digits;

    #[test]
    fn a_number_that_is_rounded_up_has_three_digits_still() {
        let numbers = [1.56, 9.994, 9.996, 51.2, 99.94, 99.96, 7200.0].map(three_digits);
        assert_eq!(
            numbers,
            ["1.56", "9.99", "10.0", "51.2", "99.9", "100", "7200"]
        );
    }
}
