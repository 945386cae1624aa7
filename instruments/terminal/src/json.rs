//! One JSON value on standard output.

use serde::Serialize;

use crate::exit::CliError;

/// Prints `value` as indented JSON.
///
/// # Errors
///
/// Fails if `value` cannot be written as JSON.
pub fn print(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(CliError::because("the result cannot be written as JSON"))?;
    println!("{text}");
    Ok(())
}
