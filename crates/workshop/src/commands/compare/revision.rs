//! A git revision, built in a worktree of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench::server::command::{CommandError, run_to_end};
use loadgen::interrupt::Interrupt;
use tempfile::TempDir;

use crate::exit::{CliError, Exit};
use crate::files;
use crate::git::Git;

/// What a revision begins with on the command line.
pub(super) const GIT: &str = "git:";

/// A built revision. Dropping it removes the worktree.
pub(super) struct Revision {
    git: Git,
    commit: String,
    /// The folder within the worktree that the command was called in.
    folder: PathBuf,
    worktree: TempDir,
    /// Nobody else builds into the kept target folder meanwhile.
    _lock: Option<File>,
}

impl Revision {
    /// Builds `revision` for the side `name` with the command `build`.
    pub(super) fn build(
        name: &str,
        revision: &str,
        build: &str,
        interrupt: &Interrupt,
        say: &dyn Fn(&str),
    ) -> Result<Self, CliError> {
        let (root, within) = repository()?;
        let git = Git::at(&root)?;
        // A revision that begins with a dash would be an option.
        let commit = Some(revision)
            .filter(|revision| !revision.is_empty() && !revision.starts_with('-'))
            .and_then(|revision| {
                let asked = format!("{revision}^{{commit}}");
                git.ask(["rev-parse", "--verify", "--quiet", &asked])
            })
            .ok_or_else(|| {
                CliError::usage(format!(
                    "--{name} {GIT}{revision}: the repository has no such revision"
                ))
            })?;
        let worktree = files::temporary()?;
        let at = worktree.path().join("source");
        let path = at.display().to_string();
        git.say(["worktree", "add", "--detach", "--quiet", &path, &commit])?;
        let lock = kept_target(&root, name, &at);
        let ready = Self {
            folder: at.join(within),
            git,
            commit,
            worktree,
            _lock: lock,
        };
        if !ready.folder.is_dir() {
            return Err(CliError::usage(format!(
                "--{name} {GIT}{revision}: that revision has no folder {}",
                ready.folder.display()
            )));
        }
        say(&format!("{name}: {build} at {GIT}{revision}"));
        run_to_end(
            &format!("build of the {name}"),
            build,
            &ready.folder,
            interrupt,
        )
        .map_err(|error| match error {
            CommandError::Interrupted => CliError::interrupted(),
            other => CliError::new(Exit::Invalid, other),
        })?;
        Ok(ready)
    }

    /// The commit's full name.
    pub(super) fn commit(&self) -> &str {
        &self.commit
    }

    /// Where its build is started.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Revision {
    fn drop(&mut self) {
        let path = self.worktree.path().join("source").display().to_string();
        // What stays behind of it goes with the temporary folder, and with git's next clean-up.
        let _ = self.git.ask(["worktree", "remove", "--force", &path]);
    }
}

/// The root of the repository that this folder lies in, and the way from there.
fn repository() -> Result<(PathBuf, PathBuf), CliError> {
    let asked = |what: &str| {
        let said = Command::new("git")
            .args(["rev-parse", what])
            .stdin(Stdio::null())
            .output();
        let said = said.ok().filter(|said| said.status.success())?;
        let text = String::from_utf8(said.stdout).ok()?;
        Some(PathBuf::from(text.trim_end_matches('\n')))
    };
    asked("--show-toplevel")
        .zip(asked("--show-prefix"))
        .ok_or_else(|| {
            CliError::usage(format!(
                "{GIT}REVISION needs git, and a git repository in this folder; change to yours, or \
                 name commands"
            ))
        })
}

/// Lets cargo find what it built for this side the last time: a revision that differs in one file
/// then takes seconds. Without it, or while another comparison has it, everything is built.
fn kept_target(root: &Path, name: &str, worktree: &Path) -> Option<File> {
    let kept = root.join("target/workshop").join(name);
    let inside = worktree.join("target");
    if !worktree.join("Cargo.toml").is_file() || inside.exists() {
        return None;
    }
    fs::create_dir_all(&kept).ok()?;
    let lock = File::create(kept.join(".lock")).ok()?;
    lock.try_lock().ok()?;
    link(&kept, &inside).ok()?;
    Some(lock)
}

#[cfg(unix)]
fn link(kept: &Path, inside: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(kept, inside)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
