//! What every installation shares: a folder beside the final place, a program
//! run with the end of its output kept, and a sentence when it fails.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::tools::Tools;

/// How a folder's name begins in which something is being installed.
pub(super) const PARTIAL: &str = "partial-";

/// How an installation ended well.
#[derive(Debug)]
pub(super) enum Done {
    /// It was there already; what exactly.
    There(String),
    /// It is now.
    Installed,
    /// There is nothing to install; why.
    Skipped(String),
}

/// Why a tool is not there.
#[derive(Debug)]
pub(super) struct Failed {
    /// What, and what to do.
    pub(super) sentence: String,
    /// The last lines of the program that failed.
    pub(super) tail: String,
}

impl Failed {
    pub(super) fn because(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            tail: String::new(),
        }
    }
}

/// A folder in `.tools/` that goes with the value.
pub(super) fn partial(tools: &Tools) -> Result<TempDir, Failed> {
    tempfile::Builder::new()
        .prefix(PARTIAL)
        .tempdir_in(&tools.folder)
        .map_err(|error| not_written(&tools.folder, &error))
}

/// Puts a finished file in its place.
pub(super) fn put(from: &Path, to: &Path) -> Result<(), Failed> {
    let moved = to
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::rename(from, to));
    moved.map_err(|error| not_written(to, &error))
}

pub(super) fn not_written(file: &Path, error: &std::io::Error) -> Failed {
    Failed::because(format!(
        "{} cannot be written ({error}): free some space or mend the folder's permissions",
        file.display()
    ))
}

/// Runs a program to its end. `doing` tells the reader what takes so long,
/// `remedy` what to do when it fails.
pub(super) fn call(command: &mut Command, doing: &str, remedy: &str) -> Result<(), Failed> {
    eprintln!("{doing} …");
    let said = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failed::because(format!("{doing} failed ({error}): {remedy}")))?;
    if said.status.success() {
        return Ok(());
    }
    let output =
        String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    let lines: Vec<&str> = output.lines().collect();
    Err(Failed {
        sentence: format!("{doing} failed; the end of its output is above: {remedy}"),
        tail: lines[lines.len().saturating_sub(15)..].join("\n"),
    })
}
