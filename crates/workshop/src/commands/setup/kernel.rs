//! A Linux kernel for the machine with several NUMA nodes, out of the distribution's package.
//!
//! The package is only unpacked: nothing is installed, and nobody has to be root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use engine::child;

use super::{Done, Setup, put};
use terminal::exit::CliError;

/// The package whose hash is known, as apt takes it: Debian 12's kernel for virtual machines.
const KNOWN: &str = "linux-image-6.1.0-56-cloud-amd64=6.1.192-2";
/// SHA-256 of its file.
const SHA256: &str = "e7d02b943971edcb8790e256c02cfab3bca6c3d37c1bf25392a57c71300615ee";

/// Packages that depend on the newest kernel for virtual machines: Debian's, and Ubuntu's.
const NEWEST: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-virtual"];

impl Setup {
    pub(super) fn kernel(&self) -> Result<Done, CliError> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Ok(Done::Skipped(
                "only Linux on x86-64 runs the machine with several NUMA nodes",
            ));
        }
        let known = apt_cache("show", KNOWN).filter(|said| !said.is_empty());
        let known = known.map(|_| KNOWN.to_owned());
        let package = known.or_else(|| NEWEST.iter().find_map(|newest| image_of(newest)));
        let (Some(package), Some(_)) = (package, child::find("dpkg-deb")) else {
            return Ok(Done::Skipped(
                "it comes from Debian's or Ubuntu's packages (apt-get update, if this is one); name a \
                 kernel of your own with WORKSHOP_KERNEL=/boot/vmlinuz-…",
            ));
        };
        if package != KNOWN {
            eprintln!(
                "note: {KNOWN}, whose hash is known here, is not among this system's packages; \
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
        if package == KNOWN {
            let is = engine::service::program::digest(std::fs::read(&archive).unwrap_or_default());
            if is != SHA256 {
                return Err(CliError::bad(format!(
                    "{package} has the wrong hash, so nothing was installed: its SHA-256 is {is}, not {SHA256}; try another mirror, or name a \
                     kernel of your own with WORKSHOP_KERNEL=/boot/vmlinuz-…"
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

/// The package of a kernel that `newest` depends on.
fn image_of(newest: &str) -> Option<String> {
    let said = apt_cache("depends", newest)?;
    let mut packages = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    let image = packages.find(|package| package.starts_with("linux-image-"));
    image.map(str::to_owned)
}

/// Returns the output of `apt-cache`; `None` if it fails or is not installed.
fn apt_cache(command: &str, package: &str) -> Option<String> {
    let mut apt_cache = Command::new("apt-cache");
    let said = apt_cache.args([command, package]).stdin(Stdio::null());
    let said = said.output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

fn file_in(folder: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut files = std::fs::read_dir(folder).ok()?.flatten();
    let file = files.find(|entry| is_it(&entry.file_name().to_string_lossy()))?;
    Some(file.path())
}
