//! Provenance of a record: date, commit, compiler, and the digest of its claims.

use std::{path::Path, process::Command, time::SystemTime};

use crate::measurement::record::Commit;

/// Formats the current time in UTC, to the second: `2026-11-20T20:30:00Z`. A clock before 1970 counts as the
/// beginning of 1970.
pub fn now() -> String {
    written(SystemTime::now())
}

fn written(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

/// Returns the version of the `rustc` that cargo calls in `folder`, such as `1.95.0`.
pub fn rustc_version(folder: &Path) -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = said_by(Command::new(rustc).arg("--version").current_dir(folder))?;
    Some(said.split_whitespace().nth(1)?.to_owned())
}

/// Returns the commit checked out in `folder`; `unknown` without git or a repository, because a downloaded
/// archive must work, too. Changes in its folder `recorded` do not count: they are earlier measurements, not
/// code.
pub fn checked_out(folder: &Path, recorded: &str) -> Commit {
    let git = |arguments: &[&str]| said_by(Command::new("git").args(arguments).current_dir(folder));
    let hash = git(&["rev-parse", "HEAD"]);
    let code = format!(":(exclude){recorded}");
    let changes = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ".",
        &code,
    ]);
    Commit {
        hash: hash.unwrap_or_else(|| "unknown".to_owned()),
        dirty: changes.is_none_or(|changes| !changes.is_empty()),
    }
}

fn said_by(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_utc_to_the_second() {
        let now = now();
        assert_eq!(now.len(), "2026-11-20T20:30:00Z".len(), "{now}");
        assert!(now.ends_with('Z'), "{now}");
        let before = SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1);
        assert_eq!(written(before), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn the_compiler_says_its_version() {
        let version = rustc_version(Path::new(".")).unwrap();
        assert!(version.starts_with("1."), "{version}");
    }

    #[test]
    fn a_folder_outside_git_has_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        let commit = checked_out(folder.path(), "recorded");
        assert_eq!(commit.in_short(), "unknown with changes");
    }

    #[test]
    fn a_changed_file_shows_in_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
            let done = Command::new("git")
                .args(identity)
                .args(arguments)
                .current_dir(folder.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        let file = folder.path().join("file");
        let recorded = folder.path().join("recorded/figures");
        std::fs::write(&file, "one").unwrap();
        std::fs::create_dir(folder.path().join("recorded")).unwrap();
        std::fs::write(&recorded, "one").unwrap();
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "One"]);
        let is_clean = || !checked_out(folder.path(), "recorded").dirty;
        assert!(is_clean());
        assert_eq!(checked_out(folder.path(), "recorded").hash.len(), 40);
        std::fs::write(&recorded, "two").unwrap();
        assert!(is_clean(), "what was measured before is no code");
        std::fs::write(&file, "two").unwrap();
        assert!(!is_clean());
    }
}
