//! A copy of the workshop's code, to be changed as a check likes: the reader's files keep their text.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use super::context::Context;
use crate::chapters::Chapter;
use crate::exit::CliError;

/// What cargo and `check` read.
const PARTS: [&str; 5] = [".cargo", "Cargo.toml", "Cargo.lock", "chapters", "crates"];

/// A copy in the state folder, which is shared with the workshop: what is compiled. Dropping it
/// removes it.
///
/// Cargo takes a file in both for the same one and goes by its time, so a copy has its original's.
pub(super) struct Scratch<'a> {
    context: &'a Context<'a>,
    folder: PathBuf,
}

impl<'a> Scratch<'a> {
    /// Always in the same place, so that what is compiled there is found again.
    pub(super) fn copy(context: &'a Context<'a>) -> Result<Self, CliError> {
        let scratch = Self {
            context,
            folder: context.folder.join("scratch"),
        };
        let _ = fs::remove_dir_all(&scratch.folder);
        for part in PARTS {
            copy(
                &context.workshop.root().join(part),
                &scratch.folder.join(part),
            )
            .map_err(CliError::because(format!("{part} cannot be copied")))?;
        }
        Ok(scratch)
    }

    /// Makes `code` the chapter's exercise.
    pub(super) fn put(&self, chapter: &Chapter, code: &str) -> Result<(), CliError> {
        let file = self.context.workshop.shown(&chapter.source("exercise"));
        let file = self.folder.join(file);
        // What is the same already keeps its time, and is not compiled again.
        if fs::read_to_string(&file).is_ok_and(|text| text == code) {
            return Ok(());
        }
        fs::write(&file, code)
            .map_err(|error| CliError::bad(format!("the exercise cannot be written: {error}")))
    }

    /// `cargo workshop WORDS` in the copy.
    pub(super) fn own(&self, words: &str) -> Command {
        let root = self.context.workshop.root();
        let shared = std::env::var_os("CARGO_TARGET_DIR");
        let shared = root.join(shared.unwrap_or("target".into()));
        let mut command = self.context.own(words);
        command.current_dir(&self.folder);
        command.env("CARGO_TARGET_DIR", shared);
        command
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        for chapter in &self.context.chapters {
            // Newer than what was compiled of a copy, lest the reader's next `check` grades that.
            let own = File::options()
                .append(true)
                .open(chapter.source("exercise"));
            let _ = own.and_then(|file| file.set_modified(SystemTime::now()));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Copies files and folders with their times; links are left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?;
    if kind.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
    } else if kind.is_file() {
        fs::copy(from, to)?;
        let copied = File::options().append(true).open(to)?;
        copied.set_modified(kind.modified()?)?;
    }
    Ok(())
}
