//! One JSON value on standard output.

use serde::Serialize;

use crate::exit::Problem;

/// Prints `value`, and nothing else.
pub(crate) fn print(value: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Problem::bad(format!("the result cannot be written as JSON: {e}")))?;
    println!("{text}");
    Ok(())
}
