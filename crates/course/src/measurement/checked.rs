//! Values that are refused while the file is read, so that the error names their line.

use serde::{Deserialize, Deserializer, de::Error};

/// Reads a number above 0.
pub(crate) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(from, |value| value > 0.0, "write a number above 0")
}

/// Reads a number above 0, for a key that may be left out.
pub(crate) fn positive_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    positive(from).map(Some)
}

/// Reads a part of something: more than nothing and less than all of it.
pub(crate) fn part<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(
        from,
        |value| value > 0.0 && value < 1.0,
        "write a number above 0 and below 1",
    )
}

/// Reads a time in seconds: 0 or more. A day is more than any round lasts, and keeps `Duration` from
/// overflowing.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(
        from,
        |value| (0.0..=86_400.0).contains(&value),
        "write seconds, from 0 to 86400",
    )
}

/// Reads a time in seconds above 0.
pub(crate) fn some_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(
        from,
        |value| value > 0.0 && value <= 86_400.0,
        "write seconds, above 0 and at most 86400",
    )
}

/// Reads a time above 0, for a key that may be left out.
pub(crate) fn some_seconds_if_any<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<f64>, D::Error> {
    some_seconds(from).map(Some)
}

/// Reads a share of requests: 0 or more, below 1.
pub(crate) fn share_of_requests<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(
        from,
        |value| (0.0..1.0).contains(&value),
        "write a share, 0 or more and below 1",
    )
}

/// Reads a rate per second.
pub(crate) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(
        from,
        |value| (0.0..=100_000.0).contains(&value),
        "write a rate per second, from 0 to 100000",
    )
}

fn number<'de, D: Deserializer<'de>>(
    from: D,
    is_right: impl Fn(f64) -> bool,
    remedy: &str,
) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if value.is_finite() && is_right(value) {
        return Ok(value);
    }
    let message = format!("{value} cannot be meant; {remedy}");
    Err(D::Error::custom(message))
}

/// Reads a whole number above 0.
pub(crate) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(from)?;
    if value == 0 {
        let message = "0 cannot be meant; write 1 or more";
        return Err(D::Error::custom(message));
    }
    Ok(value)
}

/// Reads a text with at least a word.
pub(crate) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.trim().is_empty() {
        let message = "it is empty; write at least a word";
        return Err(D::Error::custom(message));
    }
    Ok(text)
}

/// Reads the path of a request.
pub(crate) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let path = String::deserialize(from)?;
    if !path.starts_with('/') {
        let message = format!("the path `{path}` does not start with `/`; write `/{path}`");
        return Err(D::Error::custom(message));
    }
    Ok(path)
}

/// Reads the method of a request.
pub(crate) fn method<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let method = String::deserialize(from)?;
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let message = format!("`{method}` is not an HTTP method; write one such as `GET`");
        return Err(D::Error::custom(message));
    }
    Ok(method)
}
