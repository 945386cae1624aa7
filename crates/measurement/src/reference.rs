//! Figures published elsewhere, from `reference/seed-figures.toml`: always
//! shown as somebody else's.

use serde::{Deserialize, Serialize};

use crate::chapter_file::Reference;

/// One figure of somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// What the figure is.
    pub label: String,
    /// The figure as published.
    pub value: String,
    /// The table of the figures' file that holds it.
    pub source: String,
    /// Its key in that table.
    pub figure: String,
    /// The repository of the published code, where there is one.
    pub code: Option<String>,
    /// What to know before comparing it with one's own.
    pub caveat: Option<String>,
}

/// A chapter points to a figure that the figures' file does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The figures' file is not TOML.
    #[error("{file}: not understood ({what}); mend the TOML at that place.")]
    NotToml {
        /// The file, as the caller calls it.
        file: String,
        /// What the parser said.
        what: String,
    },
    /// It has no such figure.
    #[error(
        "{file}: there is no figure `{figure}` under [{source_table}]; correct the [[reference]] in chapter.toml or add the figure."
    )]
    Missing {
        /// The file, as the caller calls it.
        file: String,
        /// The table looked in.
        source_table: String,
        /// The key looked for.
        figure: String,
    },
}

/// Looks up every reference of a chapter in the text of the figures' file.
///
/// # Errors
///
/// When the text is not TOML, or holds no such figure, or one that is neither
/// a number nor a string.
pub fn look_up(
    figures: &str,
    shown_as: &str,
    references: &[Reference],
) -> Result<Vec<Published>, ReferenceError> {
    let not_toml = |error: toml::de::Error| ReferenceError::NotToml {
        file: shown_as.to_owned(),
        what: error.message().to_owned(),
    };
    let figures: toml::Table = figures.parse().map_err(not_toml)?;
    references
        .iter()
        .map(|reference| {
            let table = figures.get(&reference.source);
            let value = table
                .and_then(|table| in_words(table.get(&reference.figure)?))
                .ok_or_else(|| ReferenceError::Missing {
                    file: shown_as.to_owned(),
                    source_table: reference.source.clone(),
                    figure: reference.figure.clone(),
                })?;
            let code = table.and_then(|table| table.get("url_of_code")?.as_str());
            Ok(Published {
                label: reference.label.clone(),
                value,
                source: reference.source.clone(),
                figure: reference.figure.clone(),
                code: code.map(str::to_owned),
                caveat: reference.caveat.clone(),
            })
        })
        .collect()
}

/// A number or a word; several, such as a figure for each stage, one after the other.
fn in_words(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::Integer(value) => Some(value.to_string()),
        toml::Value::Float(value) => Some(value.to_string()),
        toml::Value::String(value) => Some(value.clone()),
        toml::Value::Array(values) => {
            let words: Option<Vec<String>> = values.iter().map(in_words).collect();
            Some(words?.join(" → "))
        }
        _ => None,
    }
}
