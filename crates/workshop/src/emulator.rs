//! Parts of the machine with several NUMA nodes that Rust does not bring: QEMU, a kernel, a C compiler.

use std::path::{Path, PathBuf};

use crate::tools::{self, Tools};

/// Names the file of a Linux kernel where none is found.
const KERNEL: &str = "WORKSHOP_KERNEL";

/// All parts, which are there.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// QEMU's program.
    pub(crate) qemu: PathBuf,
    /// QEMU's version.
    pub(crate) qemu_version: String,
    /// The image of a Linux kernel.
    pub(crate) kernel: PathBuf,
}

impl Emulator {
    /// Finds all parts. The kernel that `setup` unpacked is taken before the one that this computer runs.
    ///
    /// # Errors
    ///
    /// A sentence that says what is missing, and how to get it.
    pub(crate) fn find(tools: &Tools) -> Result<Self, String> {
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
        let qemu_version = tools::version(&qemu, ["--version"])
            .ok_or(format!("{} does not run", qemu.display()))?;
        children::find("cc").ok_or(
            "there is no C compiler, which the plugin for QEMU needs: sudo apt-get install gcc \
             libc6-dev",
        )?;
        let kernel = kernel(&tools.kernel()).ok_or(format!(
            "the machine needs a Linux kernel: cargo workshop setup kernel, or name a file of your \
             own with {KERNEL}=/boot/vmlinuz-…"
        ))?;
        Ok(Self {
            qemu,
            qemu_version,
            kernel,
        })
    }
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
