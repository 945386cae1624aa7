//! A copy of the workshop's code, to be changed as a check likes: the reader's files keep their text.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
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
        Self::copy_with(context, "scratch", &[])
    }

    /// The same in the folder `name` of the state folder, with more of the workshop's parts.
    pub(super) fn copy_with(
        context: &'a Context<'a>,
        name: &str,
        more: &[&str],
    ) -> Result<Self, CliError> {
        let scratch = Self {
            context,
            folder: context.folder.join(name),
        };
        let _ = fs::remove_dir_all(&scratch.folder);
        for part in PARTS.iter().chain(more) {
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

    /// The same for the same code of chapter, crates and dependencies.
    pub(super) fn hash_of(&self, chapter: &Chapter) -> Result<String, CliError> {
        let own = self
            .folder
            .join(self.context.workshop.shown(&chapter.folder));
        let [claims, code] = ["chapter.toml", "src"].map(|part| own.join(part));
        let [lock, crates] = ["Cargo.lock", "crates"].map(|part| self.folder.join(part));
        let parts = [claims, code, lock, crates];
        hash_of(&parts).map_err(CliError::because("the copy cannot be read"))
    }

    /// Where it lies.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is compiled lies there, of the workshop and of the copy.
    pub(super) fn target(&self) -> PathBuf {
        let shared = std::env::var_os("CARGO_TARGET_DIR");
        let root = self.context.workshop.root();
        root.join(shared.unwrap_or("target".into()))
    }

    /// `cargo workshop WORDS` in the copy.
    pub(super) fn own(&self, words: &str) -> Command {
        self.within(self.context.own(words))
    }

    /// `cargo WORDS` in the copy.
    pub(super) fn cargo(&self, words: &str) -> Command {
        self.within(self.context.cargo(words))
    }

    fn within(&self, mut command: Command) -> Command {
        command.current_dir(&self.folder);
        command.env("CARGO_TARGET_DIR", self.target());
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

/// The same for the same files and folders.
pub(super) fn hash_of(parts: &[PathBuf]) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hash(part, &mut hasher)?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Hashes all files of a folder, or one file.
fn hash(path: &Path, hasher: &mut impl Hasher) -> io::Result<()> {
    if !path.is_dir() {
        fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    paths.sort();
    paths.iter().try_for_each(|path| hash(path, hasher))
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
