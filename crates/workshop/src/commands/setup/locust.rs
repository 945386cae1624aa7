//! Locust and the browser's driver, in a virtual environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use loadgen::interrupt::Interrupt;

use super::install::{Done, call, not_written, partial, put};
use crate::exit::CliError;
use crate::tools::{self, Tools};

/// Makes the environment anew unless it holds just what the requirements say. The one that is there
/// stays until the new one is whole.
pub(super) fn install(tools: &Tools, interrupt: &Interrupt) -> Result<Done, CliError> {
    let (files, text) = tools.requirements();
    if files.is_empty() {
        return Ok(Done::Skipped("there is no locust/requirements.txt"));
    }
    if tools.venv_is_current() {
        return Ok(Done::There);
    }
    let Some((python, _)) = tools::python() else {
        return Err(CliError::bad(
            "Locust needs Python 3, and there is none: install it from https://www.python.org (on \
             Debian: apt-get install python3-venv), then run `cargo workshop setup locust`",
        ));
    };
    let next = tools.next_venv();
    let made = make(&python, &next, &files, &text, interrupt);
    if made.is_err() {
        let _ = std::fs::remove_dir_all(&next);
    }
    made?;
    let venv = tools.venv();
    rename_within(&next, &venv).map_err(not_written(&next))?;
    let old = partial(tools)?;
    if venv.exists() {
        put(&venv, &old.path().join("venv"))?;
    }
    put(&next, &venv)?;
    Ok(Done::Installed)
}

/// A whole environment at `next`, where there is none yet.
fn make(
    python: &Path,
    next: &Path,
    files: &[PathBuf],
    text: &str,
    interrupt: &Interrupt,
) -> Result<(), CliError> {
    call(
        Command::new(python).args(["-m", "venv"]).arg(next),
        "making a Python environment for Locust",
        "on Debian, apt-get install python3-venv; then run `cargo workshop setup locust` again",
        interrupt,
    )?;
    let mut pip = Command::new(tools::in_venv(next, "python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]);
    for file in files {
        pip.arg("--requirement").arg(file);
    }
    call(
        &pip,
        "installing Locust, some seconds",
        "is the network there? Then run `cargo workshop setup locust` again",
        interrupt,
    )?;
    let stamp = next.join(tools::VENV_STAMP);
    std::fs::write(&stamp, text).map_err(not_written(&stamp))
}

/// An environment's programs name its folder. The two names have the same length, so that this is
/// right in Windows' launchers, too.
fn rename_within(from: &Path, to: &Path) -> std::io::Result<()> {
    let [from_name, to_name] = [from, to].map(|path| path.as_os_str().as_encoded_bytes());
    let programs = tools::in_venv(from, "python");
    let programs = programs.parent().unwrap_or(from);
    for entry in std::fs::read_dir(programs)? {
        let file = entry?;
        // The interpreter may be a link to the system's.
        if !file.file_type()?.is_file() {
            continue;
        }
        let mut bytes = std::fs::read(file.path())?;
        let mut place = 0;
        while let Some(found) = find(&bytes[place..], from_name) {
            let start = place + found;
            bytes.splice(start..start + from_name.len(), to_name.iter().copied());
            place = start + to_name.len();
        }
        if place > 0 {
            std::fs::write(file.path(), bytes)?;
        }
    }
    Ok(())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
