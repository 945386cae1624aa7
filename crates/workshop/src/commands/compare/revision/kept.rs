//! Where cargo builds a side's revisions. It is kept, so that a revision that differs in one file takes
//! seconds; but nothing in it can be started that an earlier revision left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::files;

/// A target folder.
pub(super) struct Kept {
    folder: PathBuf,
    /// Written when the build began. While it is locked, nobody else builds there. `None` where the folder
    /// is new.
    begun: Option<File>,
}

impl Kept {
    /// The folder of the side `name` in the repository at `root`; or a new one in `temporary`, while another
    /// comparison has that one, and where nothing can be written to it.
    pub(super) fn of(root: &Path, name: &str, temporary: &Path) -> Self {
        let kept = || {
            let folder = root.join("target/workshop");
            files::ignored(&folder)?;
            let folder = folder.join(name);
            fs::create_dir_all(&folder)?;
            let begun = File::create(folder.join(".lock"))?;
            begun.try_lock()?;
            remove_products(&folder)?;
            // A step of the clock of files takes some milliseconds.
            std::thread::sleep(Duration::from_millis(20));
            begun.set_modified(SystemTime::now())?;
            Ok::<_, io::Error>((folder, Some(begun)))
        };
        let (folder, begun) = kept().unwrap_or_else(|_| {
            let new = temporary.join("target");
            // Cargo says why where it cannot be made.
            let _ = fs::create_dir(&new);
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

    /// Whether `file`, which can be looked at under the name `image`, lay there before the build began. When
    /// its inode changed tells: cargo's new link to what is up to date counts.
    #[cfg(unix)]
    pub(super) fn had(&self, file: &Path, image: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;

        let at = |file: fs::Metadata| (file.ctime(), file.ctime_nsec());
        let begun = self.begun.as_ref().and_then(|begun| begun.metadata().ok());
        let changed = fs::metadata(image).ok();
        file.starts_with(&self.folder)
            && begun
                .zip(changed)
                .is_some_and(|(begun, changed)| at(changed) < at(begun))
    }

    #[cfg(not(unix))]
    pub(super) fn had(&self, _: &Path, _: &Path) -> bool {
        false
    }
}

/// Removes all but what cargo itself goes on from: it links what is up to date from there anew.
fn remove_products(folder: &Path) -> io::Result<()> {
    const CARGOS: [&str; 5] = [
        "deps",
        "build",
        "incremental",
        ".fingerprint",
        "CACHEDIR.TAG",
    ];

    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if CARGOS.iter().any(|cargos| name == *cargos) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            remove_products(&entry.path())?;
        } else if !name.as_encoded_bytes().starts_with(b".") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
