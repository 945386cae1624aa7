//! A Linux kernel for the machine with several NUMA nodes, out of the distribution's package.
//!
//! The package is only unpacked: nothing is installed, and nobody has to be root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Done, Setup, put};
use crate::tools::Kernel;
use terminal::exit::CliError;

impl Setup {
    pub(super) fn kernel(&self, pinned: &Kernel) -> Result<Done, CliError> {
        if self.tools.kernel().is_file() {
            return Ok(Done::There);
        }
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Ok(Done::Skipped(
                "only Linux on x86-64 runs the machine with several NUMA nodes",
            ));
        }
        let known = &pinned.package;
        let (Some(package), Some(_)) = (package_of(pinned), children::find("dpkg-deb")) else {
            return Ok(Done::Skipped(
                "it comes from Debian's or Ubuntu's packages (apt-get update, if this is one); name a \
                 kernel of your own with WORKSHOP_KERNEL=/boot/vmlinuz-…",
            ));
        };
        if package != *known {
            eprintln!(
                "note: {known}, whose hash is known here, is not among this system's packages; \
                 {package} is taken instead, for which apt's signature alone speaks"
            );
        }
        let folder = self.partial()?;
        let folder = folder.path();
        self.call(
            Command::new("apt-get")
                .args(["download", &package])
                .current_dir(folder),
            &format!("downloading {package}"),
            "check the network, update the package lists (apt-get update), and run `cargo workshop setup kernel` again",
        )?;
        let archive = file_in(folder, |name| name.starts_with("linux-image")).unwrap_or_default();
        if package == *known {
            let is = engine::service::program::digest(std::fs::read(&archive).unwrap_or_default());
            if is != pinned.sha256 {
                return Err(CliError::bad(format!(
                    "{package} has the wrong hash, so nothing was installed: its SHA-256 is {is}, not {}; try another mirror, or name a \
                     kernel of your own with WORKSHOP_KERNEL=/boot/vmlinuz-…",
                    pinned.sha256
                )));
            }
        }
        let unpacked = folder.join("unpacked");
        self.call(
            Command::new("dpkg-deb")
                .arg("--extract")
                .args([&archive, &unpacked]),
            &format!("unpacking {package}"),
            "the package may be damaged: run `cargo workshop setup kernel` again",
        )?;
        let kernel = file_in(&unpacked.join("boot"), |name| name.starts_with("vmlinuz"))
            .ok_or_else(|| CliError::bad(format!("{package} holds no kernel")))?;
        put(&kernel, &self.tools.kernel())?;
        Ok(Done::Installed)
    }
}

/// Returns the package to take: the pinned one if this system has it, else that of the distribution's newest kernel.
fn package_of(pinned: &Kernel) -> Option<String> {
    if apt_cache("show", &pinned.package).is_some_and(|said| !said.is_empty()) {
        return Some(pinned.package.clone());
    }
    pinned.newest.iter().find_map(|newest| image_of(newest))
}

/// The package of a kernel that `newest` depends on.
fn image_of(newest: &str) -> Option<String> {
    let said = apt_cache("depends", newest)?;
    for line in said.lines() {
        if let Some(package) = line.trim().strip_prefix("Depends: ")
            && package.starts_with("linux-image-")
        {
            return Some(package.to_owned());
        }
    }
    None
}

/// Returns the output of `apt-cache`; `None` if it fails or is not installed.
fn apt_cache(command: &str, package: &str) -> Option<String> {
    let mut apt_cache = Command::new("apt-cache");
    apt_cache.args([command, package]).stdin(Stdio::null());
    let said = apt_cache.output().ok()?;
    if !said.status.success() {
        return None;
    }
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

fn file_in(folder: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut files = std::fs::read_dir(folder).ok()?.flatten();
    let file = files.find(|entry| is_it(&entry.file_name().to_string_lossy()))?;
    Some(file.path())
}
