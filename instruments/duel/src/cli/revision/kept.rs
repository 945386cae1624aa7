//! Target folder in which cargo builds a side's revisions. It is kept, so that a revision that differs in one file
//! builds in seconds. A program in it may therefore be of an earlier revision.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use engine::service::program::digest;

use terminal::files;

/// Name of the folder of notes on what was built here.
const NOTES: &str = ".built";

/// A target folder.
pub(super) struct Kept {
    folder: PathBuf,
    /// Lock that keeps other comparisons from building there, and the time at which the build began, by the file
    /// system's clock. `None` for a temporary folder.
    begun: Option<(File, SystemTime)>,
}

impl Kept {
    /// Opens the folder of the side `name` in the repository at `root`. It makes a new one in `temporary` if another
    /// comparison uses that folder, or nothing can be written to it. A new folder begins with a copy of `like`, so that
    /// cargo does not build again what both have in common, such as dependencies.
    pub(super) fn of(root: &Path, name: &str, temporary: &Path, like: Option<&Path>) -> Self {
        let folder = root.join("target/duel").join(name);
        let (folder, begun) = if let Ok(begun) = locked(&folder, like) {
            (folder, Some(begun))
        } else {
            let new = temporary.join("target");
            // If the folder cannot be made, cargo prints why.
            let _ = fs::create_dir(&new);
            begin_like(&new, like);
            (new, None)
        };
        Self {
            folder: fs::canonicalize(&folder).unwrap_or(folder),
            begun,
        }
    }

    /// Returns the folder's canonical path.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns `command` with the variable that makes cargo build in this folder, whatever its configuration says.
    /// On systems other than Unix no link leads to this folder. There the variable is cleared, and cargo builds in the
    /// checkout.
    pub(super) fn with(&self, command: &str) -> String {
        let folder = self.folder.display().to_string();
        if cfg!(unix) {
            let folder = folder.replace('\'', r"'\''");
            format!("export CARGO_TARGET_DIR='{folder}'; {command}")
        } else {
            format!("set \"CARGO_TARGET_DIR=\"& {command}")
        }
    }

    /// Links `target` in these folders of a checkout to this folder, if cargo can build there.
    #[cfg(unix)]
    pub(super) fn link_into(&self, checkout: impl IntoIterator<Item = PathBuf>) {
        for place in checkout {
            if place.join("Cargo.toml").is_file() {
                // A `target` that is there already is the revision's own.
                let _ = std::os::unix::fs::symlink(&self.folder, place.join("target"));
            }
        }
    }

    #[cfg(not(unix))]
    pub(super) fn link_into(&self, _: impl IntoIterator<Item = PathBuf>) {}

    /// Returns whether `file` was here before this build began. Its times are read from `image`, another name of the
    /// file, because a link to the file may be newer.
    pub(super) fn had(&self, file: &Path, image: &Path) -> bool {
        let Some((_, begun)) = &self.begun else {
            return false;
        };
        if let Ok(image) = fs::metadata(image) {
            for time in [image.modified(), image.created()].into_iter().flatten() {
                if time >= *begun {
                    return false;
                }
            }
        }
        file.starts_with(&self.folder)
    }

    /// Remembers the program that a build made. `of` names the build: its commit and its command.
    pub(super) fn note(&self, of: &str, sha256: &str) {
        let notes = self.folder.join(NOTES);
        // Without the note, the same build would be refused the next time, when cargo has nothing to do.
        let _ = fs::create_dir_all(&notes);
        let _ = fs::write(notes.join(digest(of)), sha256);
    }

    /// Returns whether the build `of` made this program the last time.
    pub(super) fn noted(&self, of: &str, sha256: &str) -> bool {
        let made = fs::read(self.folder.join(NOTES).join(digest(of)));
        made.is_ok_and(|made| made == sha256.as_bytes())
    }
}

/// Locks the folder in the repository's `target/duel`, which begins with a copy of `like` if it is new. Returns the lock
/// and the time at which a build begins now.
fn locked(folder: &Path, like: Option<&Path>) -> io::Result<(File, SystemTime)> {
    if let Some(above) = folder.parent() {
        files::ignored(above)?;
    }
    let is_new = !folder.exists();
    fs::create_dir_all(folder)?;
    let mut opening = File::options();
    opening.create(true).write(true).truncate(false);
    let mut lock = opening.open(folder.join(".lock"))?;
    lock.try_lock()?;
    if is_new {
        begin_like(folder, like);
    }
    // The file system's clock advances in steps of some milliseconds.
    std::thread::sleep(Duration::from_millis(20));
    lock.write_all(b"when the last build began\n")?;
    let begun = lock.metadata()?.modified()?;
    Ok((lock, begun))
}

/// Copies what cargo has built in `like` into `folder`, except the programs. Cargo builds what cannot be copied.
fn begin_like(folder: &Path, like: Option<&Path>) {
    let Some(like) = like.filter(|like| like.join(".rustc_info.json").is_file()) else {
        return;
    };
    for entry in fs::read_dir(like).into_iter().flatten().flatten() {
        let into = folder.join(entry.file_name());
        let is_of_cargo = entry.path().is_dir() && entry.file_name() != NOTES;
        if is_of_cargo && copy(&entry.path(), &into).is_err() {
            // An incomplete copy is worse than none.
            let _ = fs::remove_dir_all(&into);
        }
    }
}

/// Copies a folder and the times of its files, which cargo compares. Leaves out incremental data and programs.
fn copy(from: &Path, into: &Path) -> io::Result<()> {
    /// Name of the folder that rustc keeps for its next run. It is large, and of no use to another checkout.
    const INCREMENTAL: &str = "incremental";

    // Cargo links programs that are missing from a profile's folder again.
    let is_of_profile = from.join(".fingerprint").is_dir();
    fs::create_dir_all(into)?;
    for entry in fs::read_dir(from)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if entry.is_dir() && name != INCREMENTAL {
            copy(&entry, &into.join(name))?;
        } else if entry.is_file() && !is_of_profile {
            let time = fs::metadata(&entry)?.modified()?;
            fs::copy(&entry, into.join(&name))?;
            let copied = File::options().append(true).open(into.join(&name))?;
            copied.set_modified(time)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_begins_with_what_the_other_has_made_but_for_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let (like, new) = (folder.path().join("base"), folder.path().join("change"));
        for file in [
            ".rustc_info.json",
            ".lock",
            ".built/0",
            "release/shop",
            "release/deps/libserde.rlib",
            "release/.fingerprint/serde/dep",
            "release/incremental/shop/0",
        ] {
            let file = like.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "made").unwrap();
        }
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        let library = like.join("release/deps/libserde.rlib");
        let made = File::options().append(true).open(&library).unwrap();
        made.set_modified(long_ago).unwrap();
        begin_like(&new, Some(&like));
        let copied = fs::metadata(new.join("release/deps/libserde.rlib")).unwrap();
        assert_eq!(copied.modified().unwrap(), long_ago);
        assert!(new.join("release/.fingerprint/serde/dep").is_file());
        for left_out in ["release/shop", "release/incremental", ".built", ".lock"] {
            assert!(!new.join(left_out).exists(), "{left_out}");
        }
    }
}
