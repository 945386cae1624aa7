//! What every installation shares: a folder beside the final place, a program
//! run with the end of its output kept, and a sentence when it fails.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::exit::CliError;
use crate::tools::Tools;

/// How a folder's name begins in which something is being installed.
pub(super) const PARTIAL: &str = "partial-";

#[derive(Debug)]
pub(super) enum Done {
    There,
    Installed,
    /// There is nothing to install; why.
    Skipped(&'static str),
}

/// A folder in `.tools/` that goes with the value.
pub(super) fn partial(tools: &Tools) -> Result<TempDir, CliError> {
    tempfile::Builder::new()
        .prefix(PARTIAL)
        .tempdir_in(&tools.folder)
        .map_err(not_written(&tools.folder))
}

pub(super) fn put(from: &Path, to: &Path) -> Result<(), CliError> {
    let moved = to
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::rename(from, to));
    moved.map_err(not_written(to))
}

pub(super) fn not_written(file: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    move |error| {
        CliError::bad(format!(
            "{} cannot be written ({error}): free some space or mend the folder's permissions",
            file.display()
        ))
    }
}

/// Runs a program to its end. `doing` tells the reader what takes so long,
/// `remedy` what to do when it fails.
pub(super) fn call(command: &mut Command, doing: &str, remedy: &str) -> Result<(), CliError> {
    eprintln!("{doing} …");
    let said = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| CliError::bad(format!("{doing} failed ({error}): {remedy}")))?;
    if said.status.success() {
        return Ok(());
    }
    let output =
        String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    let lines: Vec<&str> = output.lines().collect();
    eprintln!("{}", lines[lines.len().saturating_sub(15)..].join("\n"));
    Err(CliError::bad(format!(
        "{doing} failed; the end of its output is above: {remedy}"
    )))
}
