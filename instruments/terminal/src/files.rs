//! Files written whole or not at all.

use std::fs::{DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use children::program;
use tempfile::NamedTempFile;

use crate::exit::CliError;

/// Checks that files of the size of a report can be written into `folder`, before anything is measured for it. An
/// empty file would not show that the disk is full.
///
/// # Errors
///
/// Fails if the folder cannot be made, or not be written to.
pub fn writable(folder: &Path) -> Result<(), CliError> {
    /// Size in bytes that most reports stay below.
    const REPORT: usize = 4 << 20;

    let refused = |error: std::io::Error| {
        CliError::usage(format!(
            "{} cannot be written to ({error}); mend its permissions or free some space, or name \
             another folder",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(refused)?;
    let mut file = tempfile::tempfile_in(folder).map_err(refused)?;
    file.write_all(&vec![0; REPORT]).map_err(refused)
}

/// Prefix of the folder that holds all temporary files of a process.
const TEMPORARY: &str = "workshop-";

/// Returns whether a path has the name of such a folder, of this process or another.
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(TEMPORARY)
}

/// Makes a folder that git leaves alone, whatever the project's own `.gitignore` says.
///
/// # Errors
///
/// Fails if the folder cannot be made, or its list not be written.
pub fn ignored(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let list = folder.join(".gitignore");
    if list.exists() {
        return Ok(());
    }
    std::fs::write(list, "*\n")
}

/// Puts all temporary files of this process, and of servers that it starts, into one folder. The
/// folder is removed when the process ends, even if it is killed.
pub fn tidied_up_after_a_kill() {
    static ONCE: Once = Once::new();

    ONCE.call_once(|| {
        let name = format!(
            "{TEMPORARY}{:016x}",
            RandomState::new().build_hasher().finish()
        );
        let folder = tempfile::env::temp_dir().join(name);
        // The remover must run before there is anything to remove. Without a shell, files stay only after a kill.
        let Ok(remover) = children::remove_at_the_end(&folder) else {
            return;
        };
        // The remover waits for the end of this process.
        std::mem::forget(remover);
        #[cfg_attr(not(unix), allow(unused_mut))] // Its mode is set on Unix alone.
        let mut builder = DirBuilder::new();
        // Only the owner may list the folder. Another account, such as that of a database server, must be able
        // to pass through it to a folder of its own.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o711);
        if builder.create(&folder).is_ok() {
            let _ = tempfile::env::override_temp_dir(&folder);
        }
    });
}

/// Makes a temporary folder that is removed when the value is dropped.
///
/// # Errors
///
/// Fails if the folder cannot be made.
pub fn temporary() -> Result<tempfile::TempDir, CliError> {
    tidied_up_after_a_kill();
    tempfile::tempdir().map_err(CliError::because("a temporary folder cannot be made"))
}

/// Returns a path in `folder` that does not exist: `STEM.EXTENSION`, or `STEM-2.EXTENSION`, and so on.
pub fn free(folder: &Path, stem: &str, extension: &str) -> PathBuf {
    let mut number = 1_u32;
    let mut path = folder.join(format!("{stem}.{extension}"));
    while path.symlink_metadata().is_ok() {
        number += 1;
        path = folder.join(format!("{stem}-{number}.{extension}"));
    }
    path
}

/// Prefix of files that are being written, or whose writer was killed. The writer holds a lock on its file, which
/// ends with the writer.
pub const PARTIAL: &str = ".workshop-partial-";

/// Replaces the content of `file` with `bytes`. If that fails, the file stays as it was.
///
/// # Errors
///
/// Fails if the new content cannot be written.
pub fn replace(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
    let refused = |error: std::io::Error| {
        CliError::bad(format!(
            "{} cannot be written ({error}); what was there is unchanged: free some space or mend \
             the folder's permissions",
            file.display()
        ))
    };
    let written = beside(file, bytes.as_ref()).map_err(refused)?;
    written.persist(file).map_err(|e| refused(e.error))?;
    Ok(())
}

/// Writes a file with these bytes to the disk, ready to be put in the place of `file`.
///
/// # Errors
///
/// Fails if the folder cannot be made, or the file not be written.
pub fn beside(file: &Path, bytes: &[u8]) -> std::io::Result<NamedTempFile> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    remove_stale(folder);
    let mut beside = partial(folder)?;
    beside.write_all(bytes)?;
    // Temporary files are private, but this one is for everybody who may read the folder.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let readable = std::fs::Permissions::from_mode(0o644);
        beside.as_file().set_permissions(readable)?;
    }
    beside.as_file().sync_all()?;
    Ok(beside)
}

/// Makes a new file that this process has locked. On a file system without locks it has none, and the file of a
/// killed writer stays there.
fn partial(folder: &Path) -> std::io::Result<NamedTempFile> {
    loop {
        let new = tempfile::Builder::new()
            .prefix(PARTIAL)
            .tempfile_in(folder)?;
        let _ = new.as_file().lock();
        // Another process may have found it before it was locked.
        if new.path().exists() {
            return Ok(new);
        }
    }
}

/// Removes files that killed writers left. Files that cannot be removed do no harm.
fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_partial = entry.file_name().to_string_lossy().starts_with(PARTIAL);
        if !is_partial {
            continue;
        }
        let file = File::options().read(true).write(true).open(entry.path());
        if let Ok(file) = file
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Locks `folder` against changes by other commands, until the value is dropped. Waits up to 10 s for the lock.
///
/// # Errors
///
/// Fails if the folder cannot be written to, or another command keeps the lock for too long.
pub fn lock(folder: &Path) -> std::io::Result<File> {
    const TIMEOUT: Duration = Duration::from_secs(10);

    std::fs::create_dir_all(folder)?;
    let file = File::create(folder.join("lock"))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < TIMEOUT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                let name = &program::running().name;
                return Err(std::io::Error::other(format!(
                    "another `{name}` is at work with it"
                )));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn another_writers_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("progress.json");
        let slow = beside(&file, b"slow").unwrap();
        replace(&file, "quick").unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        slow.persist(&file).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"slow");
        assert_eq!(names(folder.path()), ["progress.json"]);
    }

    #[test]
    fn what_a_killed_writer_left_goes_with_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format!("{PARTIAL}1")), "half").unwrap();
        replace(&folder.path().join("a"), "whole").unwrap();
        assert_eq!(names(folder.path()), ["a"]);
    }
}
