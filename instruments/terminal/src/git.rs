//! The parts of the `git` program that the workshop needs.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Serialize;

use crate::exit::CliError;

/// Variables with which a caller (a hook, `git rebase --exec`) points git at a
/// repository or an index of its own. They are removed, because git must find ours from the folder.
const INHERITED: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// Folder in which git runs.
#[derive(Debug)]
pub struct Git {
    folder: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Git {
    /// Opens the repository whose root `folder` is.
    ///
    /// # Errors
    ///
    /// Fails if `folder` is not the root of a repository.
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

    /// Opens the repository that `folder` lies in. Each command fails if there is none.
    pub fn within(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            variables: Vec::new(),
        }
    }

    /// Returns the same repository with these environment variables for git.
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

    /// Returns the output of `git ARGUMENTS`, without newlines at its end.
    ///
    /// # Errors
    ///
    /// Fails as [`Git::run`].
    pub fn say<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, CliError> {
        self.run(arguments, "")
            .map(|said| said.trim_end_matches('\n').to_owned())
    }

    /// Returns the output as [`Git::say`] does, or `None` if git ends with an error: for questions
    /// that an error answers.
    pub fn ask<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Option<String> {
        self.say(arguments).ok()
    }

    /// Returns the output of `git ARGUMENTS`, which reads `input`.
    ///
    /// # Errors
    ///
    /// Fails if git cannot be run, or ends with an error.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &str,
    ) -> Result<String, CliError> {
        let mut command = Command::new("git");
        for name in INHERITED {
            command.env_remove(name);
        }
        // Messages are compared and shown, so git must use one language and ask nothing on the terminal.
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
    /// Shortest prefix of the hash that is unique.
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
    /// Fails if the repository does not have the commit.
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
    // The longest input is a commit's message, far below what a pipe holds. If git
    // ends without reading, it prints why on standard error.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}
