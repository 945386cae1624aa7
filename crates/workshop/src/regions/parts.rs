//! What the small machine takes that Rust does not bring: QEMU, a kernel, a C compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench::{child, provenance};

use crate::exit::CliError;
use crate::tools::{self, Tools};

/// Names the file of a Linux kernel where none is found.
const KERNEL: &str = "WORKSHOP_KERNEL";

/// The source of the plugin that counts loads.
const PLUGIN: &str = include_str!("accesses.c");

/// The parts of a machine, all of them there.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(super) qemu: PathBuf,
    pub(super) qemu_version: String,
    pub(super) kernel: PathBuf,
}

impl Parts {
    /// Finds all of them, or says what is missing and how to get it.
    pub(crate) fn find(tools: &Tools) -> Result<Self, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(
                "the machine with several NUMA nodes runs programs that are built here, so it \
                 needs Linux on x86-64: a container or WSL will do"
                    .to_owned(),
            );
        }
        let Some(qemu) = child::find("qemu-system-x86_64") else {
            return Err(
                "QEMU is not installed, and it emulates the machine with several NUMA nodes: \
                 sudo apt-get install qemu-system-x86 (Fedora: qemu-system-x86-core)"
                    .to_owned(),
            );
        };
        let Some(qemu_version) = tools::version(&qemu, ["--version"]) else {
            return Err(format!("{} does not run", qemu.display()));
        };
        if child::find("cc").is_none() {
            return Err(
                "there is no C compiler, which the plugin for QEMU needs: sudo apt-get install gcc \
                 libc6-dev"
                    .to_owned(),
            );
        }
        let Some(kernel) = kernel(tools) else {
            return Err(format!(
                "the machine needs a Linux kernel: cargo workshop setup kernel, or name a file of \
                 your own with {KERNEL}=/boot/vmlinuz-…"
            ));
        };
        Ok(Self {
            qemu,
            qemu_version,
            kernel,
        })
    }

    pub(super) fn plugin(&self, folder: &Path) -> Result<PathBuf, CliError> {
        let source = folder.join("accesses.c");
        let plugin = folder.join("accesses.so");
        std::fs::write(&source, PLUGIN)
            .map_err(CliError::because("the plugin cannot be written"))?;
        let compiled = Command::new("cc")
            .args(["-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"])
            .arg(format!(
                "-DAPI_VERSION={}",
                plugin_interface(&self.qemu_version)
            ))
            .arg("-o")
            .args([&plugin, &source])
            .stdin(Stdio::null())
            .status()
            .map_err(CliError::because("cc cannot be run"))?;
        if compiled.success() {
            Ok(plugin)
        } else {
            Err(CliError::bad(
                "the plugin for QEMU does not compile; the compiler's words are above",
            ))
        }
    }

    pub(super) fn versions(&self, root: &Path) -> BTreeMap<String, String> {
        let named = [
            ("QEMU", Some(self.qemu_version.clone())),
            ("Linux", kernel_version(&self.kernel)),
            ("rustc", provenance::rustc_version(root)),
        ];
        let known = named.map(|(name, version)| Some((name.to_owned(), version?)));
        known.into_iter().flatten().collect()
    }
}

/// QEMU 9 ended the first version of its interface for plugins. What is used here has not changed.
fn plugin_interface(qemu: &str) -> u32 {
    let major = qemu.split('.').next().and_then(|major| major.parse().ok());
    if major.unwrap_or(0) < 9 { 1 } else { 2 }
}

/// The kernel that the reader names, that `setup` has unpacked, or that this computer runs.
fn kernel(tools: &Tools) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(KERNEL) {
        return Some(PathBuf::from(named)).filter(|file| is_readable(file));
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    [
        tools.kernel(),
        PathBuf::from(format!("/boot/vmlinuz-{release}")),
        PathBuf::from(format!("/lib/modules/{release}/vmlinuz")),
    ]
    .into_iter()
    .find(|file| is_readable(file))
}

fn is_readable(file: &Path) -> bool {
    std::fs::File::open(file).is_ok()
}

/// The version of a kernel's image, which stands in it as text: at the place that its header names.
fn kernel_version(image: &Path) -> Option<String> {
    let bytes = std::fs::read(image).ok()?;
    let offset = bytes.get(0x20e..0x210)?;
    let at = usize::from(u16::from_le_bytes([offset[0], offset[1]])) + 0x200;
    let text = bytes.get(at..at + 64)?;
    let text = String::from_utf8_lossy(text);
    let version = text.split(['-', ' ', '\0']).next()?;
    let is_version = version.starts_with(|c: char| c.is_ascii_digit());
    is_version.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_for_plugins_follows_the_version_of_qemu() {
        for (qemu, interface) in [("7.2.18", 1), ("8.2.2", 1), ("9.0.0", 2), ("10.1.0", 2)] {
            assert_eq!(plugin_interface(qemu), interface, "{qemu}");
        }
    }

    #[test]
    fn the_version_of_a_kernel_stands_in_its_image() {
        let mut image = vec![0_u8; 0x400];
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x313].copy_from_slice(b"6.1.0-40-cloud (x) ");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), image).unwrap();
        assert_eq!(kernel_version(file.path()).as_deref(), Some("6.1.0"));
    }
}
