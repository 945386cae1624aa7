//! `cargo workshop hint N`: the next hint.

use serde::Serialize;

use crate::chapters::Workshop;
use crate::cli::Format;
use crate::hints::{self, Hint};
use crate::progress_file::{self, Progress};
use terminal::exit::{CliError, Exit};
use terminal::json;

/// Object that `--format json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    chapter: u32,
    /// Hints seen so far, these included.
    seen: usize,
    total: usize,
    hints: &'a [Hint],
}

pub(crate) fn run(number: u32, upto: Option<usize>, format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let hints = hints::read(&chapter)?;
    let progress = Progress::read(&workshop)?;
    let seen = progress.chapter(number).hints.min(hints.len());
    let asked = match upto {
        Some(upto) if upto > hints.len() => {
            return Err(CliError::usage(format!(
                "chapter {number} has hints 1 to {}; there is no hint {upto}",
                hints.len()
            )));
        }
        Some(upto) => &hints[..upto],
        None => &hints[seen..hints.len().min(seen + 1)],
    };
    let seen = match asked.last() {
        Some(last) => seen.max(last.number),
        None => seen,
    };
    match format {
        Format::Json => json::print_as(
            "hint",
            &Report {
                chapter: number,
                seen,
                total: hints.len(),
                hints: asked,
            },
        )?,
        Format::Human => print(number, asked, hints.len()),
    }
    progress_file::remember(&workshop, number, |progress| {
        progress.hints = progress.hints.max(seen);
    });
    Ok(Exit::Good)
}

fn print(chapter: u32, hints: &[Hint], total: usize) {
    for hint in hints {
        println!(
            "Hint {} of {total}: {}\n\n{}\n",
            hint.number, hint.title, hint.text
        );
    }
    match hints.last() {
        None => println!(
            "You have seen all {total} hints. Again: cargo workshop hint {chapter} --upto {total}\n\
             One way to do it: cargo workshop solution {chapter}"
        ),
        Some(last) if last.number == total => {
            println!("This was the last one. One way to do it: cargo workshop solution {chapter}");
        }
        Some(_) => {
            println!("Try it: cargo workshop check {chapter}, or ask for another hint");
        }
    }
}
