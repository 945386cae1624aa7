//! What the command line takes as a chapter; what it does not take is refused with
//! what it would.

use crate::chapters::Workshop;

/// The number of a chapter that there is.
pub(crate) fn chapter(text: &str) -> Result<u32, String> {
    let number = text.parse();
    // Outside of the workshop every command says so itself.
    let chapters = Workshop::find().and_then(|workshop| workshop.chapters());
    let known: Vec<u32> = chapters
        .iter()
        .flatten()
        .map(|chapter| chapter.number)
        .collect();
    match (number, &known[..]) {
        (Ok(number), []) => Ok(number),
        (Ok(number), known) if known.contains(&number) => Ok(number),
        (Ok(_), known) => Err(format!("no such chapter; {}", there_are(known))),
        (Err(_), []) => Err("not a chapter's number, such as 1".to_owned()),
        (Err(_), known) => Err(format!("not a chapter's number; {}", there_are(known))),
    }
}

/// Chapters are numbered without a gap.
fn there_are(known: &[u32]) -> String {
    match known {
        [.., last] if known.len() > 1 => format!("chapters are {} to {last}", known[0]),
        _ => format!("the only chapter is {}", known[0]),
    }
}
