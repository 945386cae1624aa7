//! Locust and the browser's driver, in a virtual environment of their own.

use std::process::Command;

use super::install::{Done, call, not_written};
use crate::exit::CliError;
use crate::tools::{self, Tools};

/// Makes the environment anew unless it holds just what the requirements say.
/// It cannot be moved once made, so the stamp, written last, tells a whole one.
pub(super) fn install(tools: &Tools) -> Result<Done, CliError> {
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
    let venv = tools.venv();
    if venv.exists() {
        std::fs::remove_dir_all(&venv).map_err(not_written(&venv))?;
    }
    call(
        Command::new(python).args(["-m", "venv"]).arg(&venv),
        "making a Python environment for Locust",
        "on Debian, apt-get install python3-venv; then run `cargo workshop setup locust` again",
    )?;
    let mut pip = Command::new(tools.in_venv("python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    for file in &files {
        pip.arg("--requirement").arg(file);
    }
    call(
        &mut pip,
        "installing Locust, some seconds",
        "is the network there? Then run `cargo workshop setup locust` again",
    )?;
    let stamp = tools.venv_stamp();
    std::fs::write(&stamp, text).map_err(not_written(&stamp))?;
    Ok(Done::Installed)
}
