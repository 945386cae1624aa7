//! Where cargo builds a side's revisions. It is kept, so that a revision that differs in one file takes
//! seconds; so a program in it may be another revision's.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use engine::service::program::digest;

use terminal::files;

/// The folder of notes on what was built here.
const NOTES: &str = ".built";

/// A target folder.
pub(super) struct Kept {
    folder: PathBuf,
    /// While it is locked, nobody else builds there; and when the build began, by the clock of files. `None`
    /// where the folder is new.
    begun: Option<(File, SystemTime)>,
}

impl Kept {
    /// The folder of the side `name` in the repository at `root`; or a new one in `temporary`, while another
    /// comparison has that one, and where nothing can be written to it. A new one begins with a copy of `like`, so that what both
    /// have in common, such as dependencies, is not built again.
    pub(super) fn of(root: &Path, name: &str, temporary: &Path, like: Option<&Path>) -> Self {
        let kept = || {
            let folder = root.join("target/duel");
            files::ignored(&folder)?;
            let folder = folder.join(name);
            let is_new = !folder.exists();
            fs::create_dir_all(&folder)?;
            let mut opening = File::options();
            opening.create(true).write(true).truncate(false);
            let mut lock = opening.open(folder.join(".lock"))?;
            lock.try_lock()?;
            if is_new {
                begin_like(&folder, like);
            }
            // A step of the clock of files takes some milliseconds.
            std::thread::sleep(Duration::from_millis(20));
            lock.write_all(b"when the last build began\n")?;
            let begun = lock.metadata()?.modified()?;
            Ok::<_, io::Error>((folder, Some((lock, begun))))
        };
        let (folder, begun) = kept().unwrap_or_else(|_| {
            let new = temporary.join("target");
            // Cargo says why where it cannot be made.
            let _ = fs::create_dir(&new);
            begin_like(&new, like);
            (new, None)
        });
        Self {
            folder: fs::canonicalize(&folder).unwrap_or(folder),
            begun,
        }
    }

    /// The folder, as the system calls it.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `command` with the variable by which cargo builds there, whatever its configuration says. Where no
    /// link can lead there, cargo builds in the checkout.
    pub(super) fn with(&self, command: &str) -> String {
        let folder = self.folder.display().to_string();
        if cfg!(unix) {
            let folder = folder.replace('\'', r"'\''");
            format!("export CARGO_TARGET_DIR='{folder}'; {command}")
        } else {
            format!("set \"CARGO_TARGET_DIR=\"& {command}")
        }
    }

    /// Makes `target` in these folders of a checkout lead there, where cargo would build otherwise.
    #[cfg(unix)]
    pub(super) fn link_into(&self, checkout: impl IntoIterator<Item = PathBuf>) {
        for place in checkout {
            if place.join("Cargo.toml").is_file() {
                // One that is there is the revision's own.
                let _ = std::os::unix::fs::symlink(&self.folder, place.join("target"));
            }
        }
    }

    #[cfg(not(unix))]
    pub(super) fn link_into(&self, _: impl IntoIterator<Item = PathBuf>) {}

    /// Whether `file`, which can be looked at under the name `image`, was here before this build began. A
    /// link to it may be newer.
    pub(super) fn had(&self, file: &Path, image: &Path) -> bool {
        let Some((_, begun)) = &self.begun else {
            return false;
        };
        let is_new = fs::metadata(image).is_ok_and(|image| {
            let times = [image.modified(), image.created()];
            times.iter().flatten().any(|time| time >= begun)
        });
        file.starts_with(&self.folder) && !is_new
    }

    /// Remembers what the build `of` made, a commit and a command.
    pub(super) fn note(&self, of: &str, sha256: &str) {
        let notes = self.folder.join(NOTES);
        // Without it, the same build is refused that has nothing to do the next time.
        let _ = fs::create_dir_all(&notes);
        let _ = fs::write(notes.join(digest(of)), sha256);
    }

    /// Whether it made this the last time.
    pub(super) fn noted(&self, of: &str, sha256: &str) -> bool {
        let made = fs::read(self.folder.join(NOTES).join(digest(of)));
        made.is_ok_and(|made| made == sha256.as_bytes())
    }
}

/// Copies what cargo has built in `like` into `folder`, but for the programs themselves. What cannot be copied is built.
fn begin_like(folder: &Path, like: Option<&Path>) {
    let Some(like) = like.filter(|like| like.join(".rustc_info.json").is_file()) else {
        return;
    };
    for entry in fs::read_dir(like).into_iter().flatten().flatten() {
        let into = folder.join(entry.file_name());
        let is_of_cargo = entry.path().is_dir() && entry.file_name() != NOTES;
        if is_of_cargo && copy(&entry.path(), &into).is_err() {
            // Half of a build is worse than none.
            let _ = fs::remove_dir_all(&into);
        }
    }
}

/// Copies a folder with all that is in it, and the times of files, which cargo compares.
fn copy(from: &Path, into: &Path) -> io::Result<()> {
    /// What rustc keeps for its own next run: large, and of no use to another checkout.
    const INCREMENTAL: &str = "incremental";

    // Cargo links finished programs into the folder of a profile again, where they are missing.
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
