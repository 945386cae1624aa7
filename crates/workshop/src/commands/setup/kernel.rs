//! A Linux kernel for the machine with several NUMA nodes, out of the distribution's package.
//!
//! The package is only unpacked: nothing is installed, and nobody has to be root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench::child;
use loadgen::interrupt::Interrupt;

use super::install::{Done, call, partial, put};
use crate::exit::CliError;
use crate::tools::Tools;

/// Packages that depend on the newest kernel for virtual machines: Debian's, and Ubuntu's.
const NEWEST: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-virtual"];

pub(super) fn kernel(tools: &Tools, interrupt: &Interrupt) -> Result<Done, CliError> {
    if tools.kernel().is_file() {
        return Ok(Done::There);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Done::Skipped(
            "only Linux on x86-64 runs the machine with several NUMA nodes",
        ));
    }
    let package = NEWEST.iter().find_map(|newest| image_of(newest));
    let (Some(package), Some(_)) = (package, child::find("dpkg-deb")) else {
        return Ok(Done::Skipped(
            "it comes from Debian's or Ubuntu's packages (apt-get update, if this is one); name a \
             kernel of your own with WORKSHOP_KERNEL=/boot/vmlinuz-…",
        ));
    };
    let folder = partial(tools)?;
    call(
        Command::new("apt-get")
            .args(["download", &package])
            .current_dir(folder.path()),
        &format!("downloading {package}"),
        "is the network there, and are the package lists fresh (apt-get update)? Then run `cargo \
         workshop setup kernel` again",
        interrupt,
    )?;
    let unpacked = folder.path().join("unpacked");
    let archive = file_in(folder.path(), |name| {
        Path::new(name).extension() == Some("deb".as_ref())
    });
    call(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(archive.unwrap_or_default())
            .arg(&unpacked),
        &format!("unpacking {package}"),
        "the package may be damaged: run `cargo workshop setup kernel` again",
        interrupt,
    )?;
    let kernel = file_in(&unpacked.join("boot"), |name| name.starts_with("vmlinuz"))
        .ok_or_else(|| CliError::bad(format!("{package} holds no kernel")))?;
    put(&kernel, &tools.kernel())?;
    Ok(Done::Installed)
}

/// The package of a kernel that `newest` depends on.
fn image_of(newest: &str) -> Option<String> {
    let said = Command::new("apt-cache")
        .args(["depends", newest])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    image_in(&String::from_utf8_lossy(&said.stdout))
}

fn image_in(depends: &str) -> Option<String> {
    depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|package| package.starts_with("linux-image-"))
        .map(str::to_owned)
}

fn file_in(folder: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    files.map(|entry| entry.path()).find(|file| {
        file.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(&is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_the_one_that_is_depended_on() {
        let said = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-40-cloud-amd64\n";
        assert_eq!(
            image_in(said).as_deref(),
            Some("linux-image-6.1.0-40-cloud-amd64")
        );
        assert_eq!(image_in("linux-image-virtual\n"), None);
    }
}
