//! Parts of a machine that Rust does not bring: QEMU, a kernel, a C compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// Names the file of a Linux kernel where none is found.
const KERNEL: &str = "WORKSHOP_KERNEL";

/// The source of the plugin that counts loads.
const PLUGIN: &str = include_str!("loads.c");

/// The parts of a machine, all of them there.
#[derive(Debug)]
pub struct Parts {
    /// QEMU's program.
    pub(crate) qemu: PathBuf,
    /// QEMU's version.
    pub qemu_version: String,
    /// The image of a Linux kernel.
    pub(crate) kernel: PathBuf,
}

impl Parts {
    /// Finds all of them. A kernel at `unpacked` is taken before the one that this computer runs.
    ///
    /// # Errors
    ///
    /// A sentence that says what is missing, and how to get it.
    pub fn find(unpacked: &Path) -> Result<Self, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(
                "the machine with several NUMA nodes runs programs that are built here, so it \
                 needs Linux on x86-64: a container or WSL will do"
                    .to_owned(),
            );
        }
        let qemu = children::find("qemu-system-x86_64").ok_or(
            "QEMU, which emulates the machine with several NUMA nodes, is not installed: sudo \
             apt-get install qemu-system-x86 (Fedora: qemu-system-x86-core)",
        )?;
        let qemu_version = version(&qemu).ok_or(format!("{} does not run", qemu.display()))?;
        children::find("cc").ok_or(
            "there is no C compiler, which the plugin for QEMU needs: sudo apt-get install gcc \
             libc6-dev",
        )?;
        let kernel = kernel(unpacked).ok_or(format!(
            "the machine needs a Linux kernel: cargo workshop setup kernel, or name a file of your \
             own with {KERNEL}=/boot/vmlinuz-…"
        ))?;
        Ok(Self {
            qemu,
            qemu_version,
            kernel,
        })
    }

    /// Compiles the plugin that counts loads.
    pub(crate) fn plugin(&self, folder: &Path) -> Result<PathBuf, Error> {
        let failed = |what: String| Error::Parts(format!("the plugin for QEMU {what}"));
        let [source, plugin] = ["loads.c", "loads.so"].map(|name| folder.join(name));
        std::fs::write(&source, PLUGIN).map_err(|e| failed(format!("cannot be written: {e}")))?;
        let compiled = Command::new("cc")
            .args(["-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"])
            .arg(format!("-DAPI_VERSION={}", plugin_api(&self.qemu_version)))
            .arg("-o")
            .args([&plugin, &source])
            .stdin(Stdio::null())
            .status()
            .map_err(|e| failed(format!("needs cc, which cannot be run: {e}")))?;
        if compiled.success() {
            Ok(plugin)
        } else {
            Err(failed(
                "does not compile; the compiler's words are above".to_owned(),
            ))
        }
    }
}

/// `7.2.22` of `QEMU emulator version 7.2.22 (Debian …)`.
fn version(qemu: &Path) -> Option<String> {
    let said = Command::new(qemu).arg("--version").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut words = said.split_whitespace();
    words.find(|word| *word == "version")?;
    Some(words.next()?.to_owned())
}

/// Returns the version of the plugin interface. QEMU 9 dropped version 1. The functions that the plugin uses are the
/// same in both.
fn plugin_api(qemu: &str) -> u32 {
    let major = qemu.split('.').next().unwrap_or_default();
    if major.parse().unwrap_or(0) < 9 { 1 } else { 2 }
}

/// The kernel that the reader names, that was unpacked, or that this computer runs.
fn kernel(unpacked: &Path) -> Option<PathBuf> {
    let mut places = Vec::new();
    if let Some(named) = std::env::var_os(KERNEL) {
        places.push(PathBuf::from(named));
    } else {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let release = release.trim();
        places.push(unpacked.to_owned());
        places.push(format!("/boot/vmlinuz-{release}").into());
        places.push(format!("/lib/modules/{release}/vmlinuz").into());
    }
    // Some systems let only root read theirs.
    places
        .into_iter()
        .find(|file| std::fs::File::open(file).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_for_plugins_follows_the_version_of_qemu() {
        for (qemu, api) in [("7.2.18", 1), ("8.2.2", 1), ("9.0.0", 2), ("10.1.0", 2)] {
            assert_eq!(plugin_api(qemu), api, "{qemu}");
        }
    }
}
