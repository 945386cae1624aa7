//! What every installation shares: a folder beside the final place, a program
//! run with the end of its output kept, and a sentence when it fails.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bench::child::Starting;
use loadgen::interrupt::Interrupt;
use tempfile::TempDir;

use crate::exit::CliError;
use crate::tools::Tools;

/// How a folder's name begins in which something is being installed.
pub(super) const PARTIAL: &str = "partial-";

/// No installation takes so long, on the slowest machine, unless it hangs.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Bytes that are kept of each of its outputs.
pub(super) const KEPT: usize = 1 << 16;

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

/// Runs a program to its end. `doing` tells the reader what takes so long, `remedy` what to do when it
/// fails.
pub(super) fn call(
    command: &Command,
    doing: &str,
    remedy: &str,
    interrupt: &Interrupt,
) -> Result<(), CliError> {
    eprintln!("{doing} …");
    let said = Starting::of(command)
        .output(interrupt, TIMEOUT, KEPT)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::Interrupted => CliError::interrupted(),
            _ => CliError::bad(format!("{doing} failed ({error}): {remedy}")),
        })?;
    if said.as_ref().is_some_and(|said| said.status.success()) {
        return Ok(());
    }
    let how = match &said {
        Some(_) => "failed",
        None => "took over 30 minutes, and was ended",
    };
    for output in said.iter().flat_map(|said| [&said.stdout, &said.stderr]) {
        let text = String::from_utf8_lossy(output);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(15)..];
        if !last.is_empty() {
            eprintln!("{}", last.join("\n"));
        }
    }
    Err(CliError::bad(format!(
        "{doing} {how}; the end of its output is above: {remedy}"
    )))
}
