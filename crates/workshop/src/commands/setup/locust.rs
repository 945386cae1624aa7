//! Locust and the browser's driver, in a virtual environment of their own.

use std::path::Path;
use std::process::Command;

use super::{Done, Setup, not_written, put};
use crate::exit::CliError;
use crate::tools;

impl Setup {
    /// Makes the environment anew. The one that is there stays until the new one is whole.
    pub(super) fn locust(&self) -> Result<Done, CliError> {
        if self.tools.requirements().0.is_empty() {
            return Ok(Done::Skipped("there is no locust/requirements.txt"));
        }
        if self.tools.venv_is_current() {
            return Ok(Done::There);
        }
        let Some((python, _)) = tools::python() else {
            return Err(CliError::bad(
                "Locust needs Python 3, and there is none: install it from https://www.python.org \
                 (on Debian: apt-get install python3-venv), then run `cargo workshop setup locust`",
            ));
        };
        let (venv, next) = (self.tools.venv(), self.tools.next_venv());
        self.make_venv(&python, &next).inspect_err(|_| {
            let _ = std::fs::remove_dir_all(&next);
        })?;
        rename_within(&next, &venv).map_err(not_written(&next))?;
        let old = self.partial()?;
        if venv.exists() {
            put(&venv, &old.path().join("venv"))?;
        }
        put(&next, &venv)?;
        Ok(Done::Installed)
    }

    /// A whole environment at `next`, where there is none yet.
    fn make_venv(&self, python: &Path, next: &Path) -> Result<(), CliError> {
        self.call(
            Command::new(python).args(["-m", "venv"]).arg(next),
            "making a Python environment for Locust",
            "on Debian, apt-get install python3-venv; then run `cargo workshop setup locust` again",
        )?;
        let (files, text) = self.tools.requirements();
        let mut pip = Command::new(tools::in_venv(next, "python"));
        pip.args("-m pip install --quiet --disable-pip-version-check --require-hashes".split(' '));
        for file in files {
            pip.arg("--requirement").arg(file);
        }
        self.fetch(&pip, "installing Locust, some seconds", "locust")?;
        let stamp = next.join(tools::VENV_STAMP);
        std::fs::write(&stamp, text).map_err(not_written(&stamp))
    }
}

/// An environment's programs name its folder. The two names have the same length, so that this is
/// right in Windows' launchers, too.
fn rename_within(from: &Path, to: &Path) -> std::io::Result<()> {
    let [from_name, to_name] = [from, to].map(|path| path.as_os_str().as_encoded_bytes());
    let python = tools::in_venv(from, "python");
    for entry in std::fs::read_dir(python.parent().unwrap_or(from))? {
        let file = entry?;
        // The interpreter may be a link to the system's.
        if !file.file_type()?.is_file() {
            continue;
        }
        let mut bytes = std::fs::read(file.path())?;
        let windows = bytes.windows(from_name.len()).enumerate();
        let named = windows.filter(|(_, window)| *window == from_name);
        let places: Vec<usize> = named.map(|(place, _)| place).collect();
        for place in &places {
            bytes[*place..place + from_name.len()].copy_from_slice(to_name);
        }
        if !places.is_empty() {
            std::fs::write(file.path(), bytes)?;
        }
    }
    Ok(())
}
