//! One JSON value on standard output.

use serde::Serialize;

use crate::exit::CliError;

/// A result with its kind, and the version of the kind's form: it grows when a key goes or changes its meaning, and not
/// when one is added.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: String,
    #[serde(flatten)]
    value: &'a T,
}

/// Version of all forms of results.
const VERSION: u32 = 1;

impl<'a, T> Versioned<'a, T> {
    fn of(kind: &str, value: &'a T) -> Self {
        Self {
            schema: format!("{kind}/{VERSION}"),
            value,
        }
    }
}

/// Prints `value`, an object, as indented JSON. Its key `schema` has `kind` and the version of the kind's form: `load/1`.
///
/// # Errors
///
/// Fails if `value` cannot be written as JSON.
pub fn print_as(kind: &str, value: &impl Serialize) -> Result<(), CliError> {
    print(&Versioned::of(kind, value))
}

/// Prints a list of objects as [`print_as`] prints one.
///
/// # Errors
///
/// Fails if one cannot be written as JSON.
pub fn print_all(kind: &str, values: &[impl Serialize]) -> Result<(), CliError> {
    let all: Vec<_> = values.iter().map(|one| Versioned::of(kind, one)).collect();
    print(&all)
}

fn print(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(CliError::because("the result cannot be written as JSON"))?;
    println!("{text}");
    Ok(())
}
