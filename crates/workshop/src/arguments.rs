//! What the command line takes as a chapter and as a number; what it does not take is refused with
//! what it would.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

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

/// A share such as `5%`, or `0.05`; below the whole.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    let number = number.ok().filter(|share| (0.0..1.0).contains(share));
    number.ok_or_else(|| "not a share from 0 to below 1, such as 5% or 0.05".to_owned())
}

/// How many times, such as `2x` or `2`; more than 1.
pub(crate) fn times(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('x').parse().ok();
    let number = number.filter(|times| *times > 1.0 && times.is_finite());
    number.ok_or_else(|| "not a number above 1, such as 2x".to_owned())
}

/// A number within bounds; `such_as` is one that makes sense.
pub(crate) fn number<T: FromStr + PartialOrd + Display + Clone>(
    range: RangeInclusive<T>,
    such_as: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            format!("not a number from {low} to {high}, such as {such_as}")
        })
    }
}
