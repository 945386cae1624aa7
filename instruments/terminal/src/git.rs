//! The `git` program, as much of it as the workshop needs.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Serialize;

use crate::exit::CliError;

/// Variables by which a caller (a hook, `git rebase --exec`) points git at a
/// repository or an index of its own: ours are found from the folder.
const INHERITED: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// A folder in which git runs.
#[derive(Debug)]
pub struct Git {
    folder: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Git {
    /// The repository whose root `folder` is.
    pub fn at(folder: &Path) -> Result<Self, CliError> {
        let git = Self::within(folder);
        match git.run(["rev-parse", "--show-prefix"], "") {
            Ok(prefix) if prefix.trim().is_empty() => Ok(git),
            Ok(_) => Err(CliError::usage(format!(
                "{} lies inside another git repository: clone the workshop with git, outside of it",
                folder.display()
            ))),
            Err(error) => Err(error),
        }
    }

    /// The repository that `folder` lies in, if it does.
    pub fn within(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            variables: Vec::new(),
        }
    }

    /// The same repository with variables of git's own set.
    #[must_use]
    pub fn with<V: AsRef<OsStr>>(&self, variables: &[(&'static str, V)]) -> Self {
        let added = variables
            .iter()
            .map(|(name, value)| (*name, value.as_ref().to_owned()));
        Self {
            folder: self.folder.clone(),
            variables: self.variables.iter().cloned().chain(added).collect(),
        }
    }

    /// What `git ARGUMENTS` prints, without the last newline.
    pub fn say<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, CliError> {
        self.run(arguments, "")
            .map(|said| said.trim_end_matches('\n').to_owned())
    }

    /// As [`Git::say`], or `None` when git ends with an error: for questions
    /// that an error answers.
    pub fn ask<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Option<String> {
        self.say(arguments).ok()
    }

    /// What `git ARGUMENTS` prints when it is given `input` to read.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &str,
    ) -> Result<String, CliError> {
        let mut command = Command::new("git");
        for name in INHERITED {
            command.env_remove(name);
        }
        // Messages are compared and shown: one language, and no question on the terminal.
        command
            .envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")])
            .envs(self.variables.iter().cloned())
            .args([
                "-c",
                "i18n.commitEncoding=UTF-8",
                "-c",
                "core.quotePath=off",
            ])
            .args(arguments)
            .current_dir(&self.folder);
        let output = output(&mut command, input).map_err(|error| {
            CliError::bad(if error.kind() == std::io::ErrorKind::NotFound {
                "git is not installed, or not on the PATH: install it from https://git-scm.com"
                    .to_owned()
            } else {
                format!("git cannot be run: {error}")
            })
        })?;
        if output.status.success() {
            return String::from_utf8(output.stdout)
                .map_err(|_| CliError::bad("git printed something that is no text"));
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = match stderr.trim() {
            "" => "it says nothing, so a hook of the repository may have refused",
            said => said,
        };
        Err(if stderr.contains("not a git repository") {
            CliError::usage(format!(
                "{} is no git repository: clone the workshop with git instead of downloading it",
                self.folder.display()
            ))
        } else {
            CliError::bad(format!(
                "git could not do its work in {}: {}",
                self.folder.display(),
                stderr.replace('\n', "; ")
            ))
        })
    }
}

/// A commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its full name.
    #[serde(rename = "commit")]
    pub hash: String,
    /// As much of it as names no other.
    #[serde(skip)]
    pub short: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// Asks `git` for the commit with this full name.
    ///
    /// # Errors
    ///
    /// When the repository does not have it.
    pub fn of(git: &Git, hash: &str) -> Result<Self, CliError> {
        let said = git.say(["show", "--no-patch", "--format=%h%x09%s", hash])?;
        let (short, subject) = said.split_once('\t').unwrap_or((&said, ""));
        Ok(Self {
            hash: hash.to_owned(),
            short: short.to_owned(),
            subject: subject.to_owned(),
        })
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.short, self.subject)
    }
}

fn output(command: &mut Command, input: &str) -> std::io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Inputs are a commit's message at most, far below what a pipe holds. A git
    // that ends without reading says why on standard error.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}
