//! The learner's file: its shipped text, its text now, and a way to put it
//! back without losing anything.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::chapters::{Chapter, Workshop};
use terminal::exit::CliError;
use terminal::files;

/// A chapter's `exercise.rs`.
#[derive(Debug)]
pub(crate) struct Exercise {
    /// The learner's file, absolute.
    pub(crate) file: PathBuf,
    /// Its text; `None` when it was deleted.
    pub(crate) text: Option<String>,
    /// The text that it was shipped with.
    pub(crate) shipped: String,
}

/// Result of [`Exercise::put_back`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PutBack {
    /// It was as shipped already.
    Unchanged,
    /// There was no file to keep.
    Restored,
    /// The learner's text is in this file.
    Kept(PathBuf),
}

impl Exercise {
    /// Reads the learner's file and the two that the shipped text is made of.
    pub(crate) fn read(chapter: &Chapter) -> Result<Self, CliError> {
        let file = chapter.source("exercise");
        let text = match std::fs::read(&file) {
            // Whatever the bytes, the learner's file is kept and not refused.
            Ok(bytes) => Some(lines_end_in_newline(&String::from_utf8_lossy(&bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(CliError::usage(format!(
                    "{} cannot be read ({error}); mend its permissions",
                    file.display()
                )));
            }
        };
        let shipped = shipped(
            &read(&chapter.source("problem"))?,
            &read(&chapter.folder.join("exercise-intro.md"))?,
        );
        Ok(Self {
            file,
            text,
            shipped,
        })
    }

    /// SHA-256 of the learner's file as it is now; of no text if it cannot be read.
    pub(crate) fn digest_now(chapter: &Chapter) -> String {
        let text = Self::read(chapter).ok().and_then(|exercise| exercise.text);
        engine::service::program::digest(text.unwrap_or_default())
    }

    /// Returns whether the learner's file differs from the shipped one.
    pub(crate) fn is_edited(&self) -> bool {
        self.text.as_ref() != Some(&self.shipped)
    }

    /// Restores the shipped text. The learner's file moves to the state folder as it is, so that a
    /// save in progress ends there, too. If the move fails, nothing changes. A file that an editor
    /// saves anew during the call stays.
    pub(crate) fn put_back(&self, workshop: &Workshop, number: u32) -> Result<PutBack, CliError> {
        if !self.is_edited() {
            return Ok(PutBack::Unchanged);
        }
        let kept = workshop.state().join("kept");
        let refused = |error: std::io::Error| {
            CliError::bad(format!(
                "your exercise cannot be kept in {} ({error}), so nothing was changed: mend the \
                 folder's permissions or free some space",
                kept.display()
            ))
        };
        let _turn = files::lock(&workshop.state()).map_err(refused)?;
        // Another `reset` may have been first.
        let now = Self::read(&workshop.chapter(number)?)?;
        if !now.is_edited() {
            return Ok(PutBack::Unchanged);
        }
        let is_there = now.text.is_some();
        if is_there {
            std::fs::create_dir_all(&kept).map_err(refused)?;
        }
        // All that can fail for want of space is done before anything moves.
        let shipped = files::beside(&self.file, self.shipped.as_bytes()).map_err(refused)?;
        let mut moved = None;
        if is_there {
            moved = Some(keep(&self.file, &kept, number).map_err(refused)?);
        }
        let Err(failed) = shipped.persist_noclobber(&self.file) else {
            return Ok(match moved {
                Some(kept) => PutBack::Kept(kept),
                None => PutBack::Restored,
            });
        };
        let file = self.file.display();
        if failed.error.kind() == std::io::ErrorKind::AlreadyExists {
            let before = match moved {
                Some(kept) => format!(", and your version before is {}", workshop.shown(&kept)),
                None => String::new(),
            };
            return Err(CliError::bad(format!(
                "{file} was saved just now, so it stays as it is{before}: reset it again if that is \
                 what you want"
            )));
        }
        let before = match moved {
            Some(kept) => format!("; your version is {}", workshop.shown(&kept)),
            None => String::new(),
        };
        Err(CliError::bad(format!(
            "{file} cannot be written ({}){before}: mend the folder's permissions, and reset it again",
            failed.error
        )))
    }
}

/// The exercise as it is shipped: the problem's code under the exercise's own
/// opening comment, so that the two start equal by construction.
pub(crate) fn shipped(problem: &str, intro: &str) -> String {
    let mut text = String::new();
    for line in intro.trim_end().lines() {
        text.push_str("//!");
        if !line.trim().is_empty() {
            text.push(' ');
            text.push_str(line.trim_end());
        }
        text.push('\n');
    }
    text.push_str(split(problem).1);
    text
}

/// A source file's opening `//!` comment, and the rest.
pub(crate) fn split(source: &str) -> (&str, &str) {
    let mut opening = 0;
    for line in source.split_inclusive('\n') {
        if !line.starts_with("//!") {
            break;
        }
        opening += line.len();
    }
    source.split_at(opening)
}

/// A text file with `\n` at the end of its lines, whatever git checked out.
pub(crate) fn read(file: &Path) -> Result<String, CliError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(lines_end_in_newline(&text)),
        Err(error) => Err(CliError::usage(format!(
            "{} cannot be read ({error}); `git restore` brings it back",
            file.display()
        ))),
    }
}

fn lines_end_in_newline(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Moves `file` to a name in `folder` that no other has. The caller holds the folder's lock.
fn keep(file: &Path, folder: &Path, number: u32) -> std::io::Result<PathBuf> {
    // UTC, in characters that every file system takes: `20261120T203000Z`.
    let now = course::bench::provenance::now().replace(['-', ':'], "");
    let stem = format!("chapter{number}-exercise-{now}");
    let kept = files::free(folder, &stem, "rs");
    // Its bytes may never have come to the disk; what an editor does is its own affair. This takes long on a busy disk, so
    // it is done while the file is still in its place.
    let _ = File::open(file).and_then(|file| file.sync_all());
    if file.is_symlink() {
        // The link alone would be moved, and lead nowhere from there.
        std::fs::copy(file, &kept)?;
        std::fs::remove_file(file)?;
    } else {
        std::fs::rename(file, &kept)?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Compares the committed exercise, for a reader may have edited the file. Without git it compares the file.
    #[test]
    fn the_committed_exercise_of_each_chapter_is_the_generated_one() {
        let workshop = Workshop::find().unwrap();
        let chapters = workshop.chapters().unwrap();
        assert!(!chapters.is_empty());
        for chapter in chapters {
            let exercise = Exercise::read(&chapter).unwrap();
            let file = workshop.shown(&exercise.file);
            let shown = Command::new("git")
                .args(["show", &format!("HEAD:{file}")])
                .current_dir(workshop.root())
                .output();
            let committed = match shown {
                Ok(shown) if shown.status.success() => String::from_utf8(shown.stdout).ok(),
                _ => exercise.text,
            };
            assert_eq!(
                committed,
                Some(exercise.shipped),
                "{file} differs from problem.rs under exercise-intro.md: run `cargo workshop reset \
                 {}` and commit it",
                chapter.number
            );
        }
    }

    #[test]
    fn comments_further_down_are_code() {
        let source = "//! One.\n\n//! Two.\nfn main() {}\n";
        assert_eq!(split(source), ("//! One.\n", "\n//! Two.\nfn main() {}\n"));
        assert_eq!(split("fn main() {}"), ("", "fn main() {}"));
        assert_eq!(split("//! All."), ("//! All.", ""));
    }
}
