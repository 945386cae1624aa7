//! Locust and the browser's driver, in a virtual environment of their own.

use std::path::Path;
use std::process::Command;

use super::{Done, Setup, not_written, put};
use crate::tools;
use terminal::exit::CliError;

impl Setup {
    /// Makes the environment anew; where that fails the one that was there comes back.
    pub(super) fn locust(&self, requirements: &[String]) -> Result<Done, CliError> {
        if self.tools.requirements(requirements).0.is_empty() {
            return Ok(Done::Skipped("there is no locust/requirements.txt"));
        }
        if self.tools.venv_is_current(requirements) {
            return Ok(Done::There);
        }
        let Some((python, _)) = tools::python() else {
            return Err(CliError::bad(
                "Locust needs Python 3: install it from https://www.python.org \
                 (on Debian: apt-get install python3-venv), then run `cargo workshop setup locust`",
            ));
        };
        let (venv, aside) = (self.tools.venv(), self.partial()?);
        let old = aside.path().join("venv");
        if venv.exists() {
            put(&venv, &old)?;
        }
        self.make_venv(&python, requirements).inspect_err(|_| {
            let _ = std::fs::remove_dir_all(&venv);
            let _ = std::fs::rename(&old, &venv);
        })?;
        Ok(Done::Installed)
    }

    /// A whole environment, where there is none.
    fn make_venv(&self, python: &Path, requirements: &[String]) -> Result<(), CliError> {
        let venv = self.tools.venv();
        self.call(
            Command::new(python).args(["-m", "venv"]).arg(&venv),
            "making a Python environment for Locust",
            "on Debian, apt-get install python3-venv; then run `cargo workshop setup locust` again",
        )?;
        let (files, text) = self.tools.requirements(requirements);
        let mut pip = Command::new(self.tools.in_venv("python"));
        pip.args("-m pip install --quiet --disable-pip-version-check --require-hashes".split(' '));
        for file in files {
            pip.arg("--requirement").arg(file);
        }
        self.fetch(&pip, "installing Locust, some seconds", "locust")?;
        let stamp = venv.join(tools::VENV_STAMP);
        std::fs::write(&stamp, text).map_err(not_written(&stamp))
    }
}
