//! Values that are refused while the file is read, so that the error names their line.

use serde::{Deserialize, Deserializer, de::Error};

/// A number above 0.
pub(crate) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(from, |value| value > 0.0, "write a number above 0")
}

/// A time in seconds: 0 or more. A day is more than any round lasts, and keeps `Duration` from
/// overflowing.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let is_time = |value| (0.0..=86_400.0).contains(&value);
    number(from, is_time, "write seconds, from 0 to 86400")
}

/// A time in seconds above 0.
pub(crate) fn some_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let is_time = |value| value > 0.0 && value <= 86_400.0;
    number(from, is_time, "write seconds, above 0 and at most 86400")
}

/// A share of requests: 0 or more, below 1.
pub(crate) fn share_of_requests<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let is_share = |value| (0.0..1.0).contains(&value);
    number(from, is_share, "write a share, 0 or more and below 1")
}

/// A rate per second.
pub(crate) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let is_rate = |value| (0.0..=100_000.0).contains(&value);
    number(from, is_rate, "write a rate per second, from 0 to 100000")
}

fn number<'de, D: Deserializer<'de>>(
    from: D,
    is_right: impl Fn(f64) -> bool,
    remedy: &str,
) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if value.is_finite() && is_right(value) {
        Ok(value)
    } else {
        Err(D::Error::custom(format!(
            "{value} cannot be meant; {remedy}"
        )))
    }
}

/// A whole number above 0.
pub(crate) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        0 => Err(D::Error::custom("0 cannot be meant; write 1 or more")),
        value => Ok(value),
    }
}

/// A text with at least a word.
pub(crate) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.trim().is_empty() {
        Err(D::Error::custom("it is empty; write at least a word"))
    } else {
        Ok(text)
    }
}

/// A path of a request.
pub(crate) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let path = String::deserialize(from)?;
    if path.starts_with('/') {
        Ok(path)
    } else {
        let said = format!("the path `{path}` does not start with `/`; write `/{path}`");
        Err(D::Error::custom(said))
    }
}

/// The method of a request.
pub(crate) fn method<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let method = String::deserialize(from)?;
    if !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Ok(method)
    } else {
        let said = format!("`{method}` is not an HTTP method; write one such as `GET`");
        Err(D::Error::custom(said))
    }
}
