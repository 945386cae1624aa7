//! A clone of what is committed, to be changed as a check likes: the reader's
//! files, branches and index are not touched.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::check::{Failure, failed};
use super::context::Context;
use crate::git::Git;

/// A clone in the state folder. Dropping it removes it.
///
/// It shares what the workshop has compiled, and cargo takes a file in both for the same one: it
/// goes by its time. So files that are the same have the same time, and nothing is compiled again for
/// being copied. And what was compiled of others is removed as well: the chapters' servers, lest the
/// reader's next `check` grades a check's edit, and crates that the reader is working on.
pub(super) struct Scratch<'a> {
    context: &'a Context<'a>,
    folder: PathBuf,
    /// Names of the crates that differ from what is committed.
    uncommitted: BTreeSet<String>,
}

impl<'a> Scratch<'a> {
    /// Clones the workshop; `options` as on git's command line. Always in the
    /// same place for the same name, so that what is compiled there is found again.
    pub(super) fn clone(
        context: &'a Context<'a>,
        name: &str,
        options: &[&str],
    ) -> Result<Self, Failure> {
        let folder = context.folder.join("scratch").join(name);
        remove(&folder);
        let mut scratch = Self {
            context,
            folder,
            uncommitted: BTreeSet::new(),
        };
        let from = url(context.workshop.root());
        let mut git = context.command("git", &["clone", "--quiet"]);
        git.args(options).arg(from).arg(&scratch.folder);
        context.run(&mut git)?;
        scratch.date_files()?;
        Ok(scratch)
    }

    /// Gives each file the time of the workshop's, where that has the same bytes.
    fn date_files(&mut self) -> Result<(), Failure> {
        for name in Git::at(&self.folder)?.tracked()? {
            let copy = self.path(&name);
            let same = date(&copy, &self.context.workshop.root().join(&name))
                .or_else(|e| failed(format!("{} cannot be dated: {e}", copy.display())))?;
            let folders: Vec<&str> = name.split('/').collect();
            if let (false, ["crates", package, ..]) = (same, &folders[..]) {
                self.uncommitted.insert((*package).to_owned());
            }
        }
        Ok(())
    }

    pub(super) fn path(&self, within: &str) -> PathBuf {
        self.folder.join(within)
    }

    /// `git ARGUMENTS` in the clone.
    pub(super) fn git(&self, arguments: &[&str]) -> Command {
        self.inside(self.context.command("git", arguments))
    }

    /// `cargo ARGUMENTS` in the clone, sharing what the workshop has compiled.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Command {
        self.inside(self.context.cargo(arguments))
    }

    /// `cargo workshop ARGUMENTS` in the clone.
    pub(super) fn own(&self, arguments: &[&str]) -> Command {
        self.inside(self.context.own(arguments))
    }

    fn inside(&self, mut command: Command) -> Command {
        let root = self.context.workshop.root();
        let shared = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |set| root.join(set));
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", shared);
        command
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let mut clean = self.cargo(&["clean", "--quiet"]);
        for chapter in &self.context.chapters {
            clean.args(["--package", &chapter.package()]);
        }
        for package in &self.uncommitted {
            clean.args(["--package", package]);
        }
        // Without a clone of this name cargo has nothing to look into, and nothing was compiled.
        let _ = clean.status();
        remove(&self.folder);
    }
}

/// Gives `copy` the time of `original` if that has the same bytes, and says whether it has.
fn date(copy: &Path, original: &Path) -> io::Result<bool> {
    let same = fs::read(original).is_ok_and(|bytes| fs::read(copy).is_ok_and(|copy| copy == bytes));
    if same {
        let modified = fs::metadata(original)?.modified()?;
        File::options()
            .append(true)
            .open(copy)?
            .set_modified(modified)?;
    }
    Ok(same)
}

/// Of a folder: for a plain path git ignores `--depth`.
fn url(folder: &Path) -> String {
    let path = folder.display().to_string().replace('\\', "/");
    // `C:/folder` on Windows.
    format!("file:///{}", path.trim_start_matches('/'))
}

/// What cannot be removed now is overwritten or complained about by git next time.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
