//! Target folder in which cargo builds a side's revisions. It is kept, so that dependencies are compiled once.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use terminal::files;

/// A target folder.
pub(super) struct Kept {
    folder: PathBuf,
    /// Lock that keeps other comparisons from building there; `None` for a temporary folder.
    _lock: Option<File>,
}

impl Kept {
    /// Opens the folder of the side `name` in the repository at `root`. It makes a new one in `temporary` if another
    /// comparison uses that folder, or nothing can be written to it. A new folder begins with a copy of `like`, so that
    /// cargo does not build again what both have in common, such as dependencies. No program of an earlier build is left.
    pub(super) fn of(root: &Path, name: &str, temporary: &Path, like: Option<&Path>) -> Self {
        let folder = root.join("target/duel").join(name);
        let (folder, lock) = if let Ok(lock) = locked(&folder, like) {
            (folder, Some(lock))
        } else {
            let new = temporary.join("target");
            // If the folder cannot be made, cargo prints why.
            let _ = fs::create_dir(&new);
            begin_like(&new, like);
            (new, None)
        };
        Self {
            folder: fs::canonicalize(&folder).unwrap_or(folder),
            _lock: lock,
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
}

/// Locks the folder in the repository's `target/duel`, which begins with a copy of `like` if it is new. Returns the lock.
fn locked(folder: &Path, like: Option<&Path>) -> io::Result<File> {
    if let Some(above) = folder.parent() {
        files::ignored(above)?;
    }
    let is_new = !folder.exists();
    fs::create_dir_all(folder)?;
    let mut opening = File::options();
    opening.create(true).write(true).truncate(false);
    let lock = opening.open(folder.join(".lock"))?;
    lock.try_lock()?;
    if is_new {
        begin_like(folder, like);
    } else {
        remove_programs(folder)?;
    }
    Ok(lock)
}

/// Removes what earlier builds made for use, which cargo links again. Without this, a build that makes no program would be
/// measured by the program of another revision. What cargo builds from stays.
fn remove_programs(folder: &Path) -> io::Result<()> {
    /// Folders of a profile that cargo builds from.
    const OF_CARGO: [&str; 4] = [".fingerprint", "build", "deps", "incremental"];

    let mut marks = [".fingerprint", ".cargo-lock"].iter();
    let is_of_profile = marks.any(|mark| folder.join(mark).exists());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if !is_of_profile || OF_CARGO.iter().all(|own| name != **own) {
                remove_programs(&entry.path())?;
            }
        } else if !name.to_string_lossy().starts_with('.') && name != "CACHEDIR.TAG" {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Copies what cargo has built in `like` into `folder`, except the programs. Cargo builds what cannot be copied.
fn begin_like(folder: &Path, like: Option<&Path>) {
    let Some(like) = like.filter(|like| like.join(".rustc_info.json").is_file()) else {
        return;
    };
    for entry in fs::read_dir(like).into_iter().flatten().flatten() {
        let into = folder.join(entry.file_name());
        if !entry.path().is_dir() {
            continue;
        }
        if copy(&entry.path(), &into)
            .and_then(|()| remove_programs(&into))
            .is_err()
        {
            // An incomplete copy is worse than none.
            let _ = fs::remove_dir_all(&into);
        }
    }
}

/// Copies a folder and the times of its files, which cargo compares. Leaves out incremental data.
fn copy(from: &Path, into: &Path) -> io::Result<()> {
    /// Name of the folder that rustc keeps for its next run. It is large, and of no use to another checkout.
    const INCREMENTAL: &str = "incremental";

    fs::create_dir_all(into)?;
    for entry in fs::read_dir(from)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if entry.is_dir() && name != INCREMENTAL {
            copy(&entry, &into.join(name))?;
        } else if entry.is_file() {
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
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_build_begins_with_what_the_other_has_made_but_for_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let (like, new) = (folder.path().join("base"), folder.path().join("change"));
        for file in [
            ".rustc_info.json",
            ".lock",
            "CACHEDIR.TAG",
            "out/shop",
            "release/shop",
            "release/examples/shop",
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
        let programs = ["out/shop", "release/shop", "release/examples/shop"];
        for left_out in [&programs[..], &["release/incremental", ".lock"]].concat() {
            assert!(!new.join(left_out).exists(), "{left_out}");
        }

        // The next build in the same folder has no program of this one either.
        locked(&like, None).unwrap();
        for gone in programs {
            assert!(!like.join(gone).exists(), "{gone}");
        }
        for kept in [
            "CACHEDIR.TAG",
            "release/deps/libserde.rlib",
            "release/incremental/shop/0",
        ] {
            assert!(like.join(kept).is_file(), "{kept}");
        }
    }
}
