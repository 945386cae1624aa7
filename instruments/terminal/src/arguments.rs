//! Values that the command line takes. The message that refuses a wrong value names a right one.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::traffic::Spacing;
use statistics::condition::{Condition, NoCondition};

/// Parses a share from 0 to below 1, such as `5%` or `0.05`.
///
/// # Errors
///
/// Fails with a sentence that names a right share.
pub fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("not a share from 0 to below 1, such as 5% or 0.05".to_owned()),
    }
}

/// Parses a factor above 1, such as `2x` or `2`.
///
/// # Errors
///
/// Fails with a sentence that names a right factor.
pub fn times(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(times) if times > 1.0 && times.is_finite() => Ok(times),
        _ => Err("not a number above 1, such as 2x".to_owned()),
    }
}

/// Parses a pointer into JSON, such as `/items/0/id`.
///
/// # Errors
///
/// Fails with a sentence that names a right pointer.
pub fn pointer(text: &str) -> Result<String, String> {
    if text.len() > 1 && text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Err("not a pointer into JSON, such as /generated_at or /items/0/id".to_owned())
}

/// Parses a condition on the figures of a load, such as `p99 > 100ms`.
///
/// # Errors
///
/// Fails with a sentence that names right conditions.
pub fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|error: NoCondition| error.to_string())
}

/// Parses a condition that a search for the capacity can keep, such as `p99 < 100ms`.
///
/// # Errors
///
/// Fails with a sentence that names a right one.
pub fn goal(text: &str) -> Result<Condition, String> {
    let condition = condition(text)?;
    if condition.is_goal() {
        return Ok(condition);
    }
    Err("a search keeps a latency or the errors below a limit, such as 'p99 < 100ms' or 'errors < 0.1 %'".to_owned())
}

/// Parses an authentication scheme of HTTP, such as `Bearer`.
///
/// # Errors
///
/// Fails with a sentence that names a right scheme.
pub fn scheme(text: &str) -> Result<String, String> {
    // RFC 9110 allows more characters, and no registered scheme has them.
    let is_usual = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if !text.is_empty() && text.bytes().all(is_usual) {
        return Ok(text.to_owned());
    }
    Err("not a scheme of the header Authorization, such as Bearer or Token".to_owned())
}

/// Returns a parser of numbers in `range`. The message for a wrong number names `such_as` as an example.
pub fn number<T: FromStr + PartialOrd + Display + Clone>(
    range: RangeInclusive<T>,
    such_as: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => {
            let (low, high) = (range.start(), range.end());
            Err(format!(
                "not a number from {low} to {high}, such as {such_as}"
            ))
        }
    }
}

/// Returns a parser of the spacing of scheduled requests: `poisson` or `even`.
pub fn spacing() -> impl TypedValueParser<Value = Spacing> {
    let poisson = PossibleValue::new("poisson")
        .help("At random, as users come who know nothing of each other; drawn by the load's seed");
    let even = PossibleValue::new("even")
        .help("At even steps: the kindest form, as no two requests come at once");
    PossibleValuesParser::new([poisson, even]).map(|word| match word.as_str() {
        "even" => Spacing::Even,
        _ => Spacing::Poisson,
    })
}

/// Makes `command` read `-1` as a number, which is wrong, and not as an option that does not exist.
pub fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|command| {
        command.mut_args(|argument| {
            let takes_value = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes_value)
        })
    })
}
