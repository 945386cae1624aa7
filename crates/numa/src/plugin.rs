//! QEMU's plugin that counts loads, compiled for the QEMU that is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use terminal::exit::CliError;

/// The source of the plugin.
const SOURCE: &str = include_str!("loads.c");

/// Compiles the plugin in `folder`, for QEMU of this version.
pub(crate) fn compile(folder: &Path, qemu: &str) -> Result<PathBuf, CliError> {
    let [source, plugin] = ["loads.c", "loads.so"].map(|name| folder.join(name));
    std::fs::write(&source, SOURCE)
        .map_err(CliError::because("the plugin for QEMU cannot be written"))?;
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"])
        .arg(format!("-DAPI_VERSION={}", api(qemu)))
        .arg("-o")
        .args([&plugin, &source])
        .stdin(Stdio::null())
        .status()
        .map_err(CliError::because(
            "the plugin for QEMU needs cc, which cannot be run",
        ))?;
    if compiled.success() {
        Ok(plugin)
    } else {
        Err(CliError::bad(
            "the plugin for QEMU does not compile; the compiler's words are above",
        ))
    }
}

/// Returns the version of the plugin interface. QEMU 9 dropped version 1. The functions that the plugin uses are the
/// same in both.
fn api(qemu: &str) -> u32 {
    let major = qemu.split('.').next().unwrap_or_default();
    if major.parse().unwrap_or(0) < 9 { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_for_plugins_follows_the_version_of_qemu() {
        for (qemu, version) in [("7.2.18", 1), ("8.2.2", 1), ("9.0.0", 2), ("10.1.0", 2)] {
            assert_eq!(api(qemu), version, "{qemu}");
        }
    }
}
