//! Figures published elsewhere, from `reference/seed-figures.toml`: always
//! shown as somebody else's.

use serde::{Deserialize, Serialize};

use crate::measurement::chapter_file::Reference;

/// One figure of somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Name of the figure.
    pub label: String,
    /// The figure as published.
    pub value: String,
    /// The table of the figures' file that holds it.
    pub source: String,
    /// Its key in that table, with dots between the keys of nested ones.
    pub figure: String,
    /// The repository of the published code, where there is one.
    pub code: Option<String>,
    /// Caveat before comparing it with one's own.
    pub caveat: Option<String>,
}

/// Looks up every reference of a chapter in the text of the figures' file.
///
/// # Errors
///
/// Returns a sentence if the text is not TOML or lacks a figure. A figure must be a number, a string or an
/// array of these.
pub fn look_up(
    figures: &str,
    shown_as: &str,
    references: &[Reference],
) -> Result<Vec<Published>, String> {
    let figures: toml::Table = figures.parse().map_err(|error: toml::de::Error| {
        let what = error.message();
        format!("{shown_as}: not understood ({what}); mend the TOML at that place.")
    })?;
    let mut published = Vec::new();
    for reference in references {
        let Some((value, code)) = value_and_code(&figures, reference) else {
            return Err(format!(
                "{shown_as}: there is no figure `{}` under [{}]; correct the [[reference]] in \
                 chapter.toml or add the figure.",
                reference.figure, reference.source
            ));
        };
        published.push(Published {
            label: reference.label.clone(),
            value,
            source: reference.source.clone(),
            figure: reference.figure.clone(),
            code,
            caveat: reference.caveat.clone(),
        });
    }
    Ok(published)
}

/// Finds a figure, and the address of the code that it is about, if its source has one.
fn value_and_code(
    figures: &toml::Table,
    reference: &Reference,
) -> Option<(String, Option<String>)> {
    let table = figures.get(&reference.source)?;
    let mut value = table;
    for key in reference.figure.split('.') {
        value = value.get(key)?;
    }
    let code = match table.get("url_of_code") {
        Some(toml::Value::String(code)) => Some(code.clone()),
        _ => None,
    };
    Some((in_words(value)?, code))
}

/// Formats a number or a string. The elements of an array, such as a figure for each stage, are joined by
/// arrows. Those of a table follow their names.
fn in_words(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::Integer(value) => Some(value.to_string()),
        toml::Value::Table(values) => {
            let mut words = Vec::new();
            for (name, value) in values {
                words.push(format!("{name} {}", in_words(value)?));
            }
            Some(words.join(", "))
        }
        toml::Value::Float(value) => Some(value.to_string()),
        toml::Value::String(value) => Some(value.clone()),
        toml::Value::Array(values) => {
            let words: Option<Vec<String>> = values.iter().map(in_words).collect();
            Some(words?.join(" → "))
        }
        _ => None,
    }
}
