//! `cargo workshop reset N`: the exercise as it was shipped.

use crate::chapters::Workshop;
use crate::exercise::{Exercise, PutBack};
use terminal::exit::{CliError, Exit};

pub(crate) fn run(number: u32) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let exercise = Exercise::read(&chapter)?;
    let file = workshop.shown(&exercise.file);
    match exercise.put_back(&workshop, number)? {
        PutBack::Unchanged => println!("{file} is as it was shipped; nothing to do"),
        PutBack::Restored => println!("{file} is back as it was shipped"),
        PutBack::Kept(kept) => println!(
            "{file} is back as it was shipped; your version is kept in {}",
            workshop.shown(&kept)
        ),
    }
    // A crate that was added for a fix may be wanted elsewhere, so the reader decides.
    let others = workshop.also_changed(&chapter).join(" ");
    if !others.is_empty() {
        println!(
            "These differ from the last commit, too. To undo that: git checkout HEAD -- {others}"
        );
    }
    Ok(Exit::Good)
}
