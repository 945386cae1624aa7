//! Arguments that clap cannot check by itself. A refusal names what is accepted.

use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::chapters::Workshop;
use crate::steps::Of;
use crate::tools;

/// The number of a chapter that there is.
pub(crate) fn chapter(text: &str) -> Result<u32, String> {
    let number = text.parse();
    let mut known = Vec::new();
    // Outside of the workshop every command says so itself.
    if let Ok(workshop) = Workshop::find() {
        for chapter in workshop.chapters().unwrap_or_default() {
            known.push(chapter.number);
        }
    }
    match (number, &known[..]) {
        (Ok(number), []) => Ok(number),
        (Ok(number), known) if known.contains(&number) => Ok(number),
        (Ok(_), known) => Err(format!("no such chapter; {}", there_are(known))),
        (Err(_), []) => Err("not a chapter's number, such as 1".to_owned()),
        (Err(_), known) => Err(format!("not a chapter's number; {}", there_are(known))),
    }
}

/// Reads the argument of `steps`: a chapter's number, or `capstone`.
pub(crate) fn of_steps(text: &str) -> Result<Of, String> {
    if text == "capstone" {
        return Ok(Of::Capstone);
    }
    let number = chapter(text).map_err(|why| format!("{why}; or capstone"))?;
    Ok(Of::Chapter(number))
}

/// Accepts the name of a tool that `setup` installs.
pub(crate) fn installable() -> PossibleValuesParser {
    let mut names = Vec::new();
    for tool in tools::all() {
        if tool.is_installable() {
            names.push(PossibleValue::new(tool.name.as_str()).help(tool.needed_by.as_str()));
        }
    }
    PossibleValuesParser::new(names)
}

/// Chapters are numbered without a gap.
fn there_are(known: &[u32]) -> String {
    match known {
        [.., last] if known.len() > 1 => format!("chapters are {} to {last}", known[0]),
        _ => format!("the only chapter is {}", known[0]),
    }
}
