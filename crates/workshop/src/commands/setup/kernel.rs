//! A Linux kernel for the machine with several NUMA nodes, out of the distribution's package.
//!
//! The package is only unpacked: nothing is installed, and nobody has to be root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench::{child, provenance};
use loadgen::interrupt::Interrupt;

use super::install::{Done, call, partial, put};
use crate::exit::CliError;
use crate::tools::Tools;

/// The package whose hash is known, as apt takes it: Debian 12's kernel for virtual machines.
const KNOWN: &str = "linux-image-6.1.0-56-cloud-amd64=6.1.192-2";
/// SHA-256 of its file.
const SHA256: &str = "e7d02b943971edcb8790e256c02cfab3bca6c3d37c1bf25392a57c71300615ee";

/// Packages that depend on the newest kernel for virtual machines: Debian's, and Ubuntu's.
const NEWEST: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-virtual"];

/// A package to take, as apt takes it, and its hash where that is known.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    package: String,
    sha256: Option<&'static str>,
}

impl Choice {
    /// The known one while the mirror has it, else the newest.
    fn of(has_known: bool, newest: impl FnOnce() -> Option<String>) -> Option<Self> {
        if has_known {
            return Some(Self {
                package: KNOWN.to_owned(),
                sha256: Some(SHA256),
            });
        }
        newest().map(|package| Self {
            package,
            sha256: None,
        })
    }
}

pub(super) fn kernel(tools: &Tools, interrupt: &Interrupt) -> Result<Done, CliError> {
    if tools.kernel().is_file() {
        return Ok(Done::There);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Done::Skipped(
            "only Linux on x86-64 runs the machine with several NUMA nodes",
        ));
    }
    let choice = Choice::of(is_offered(KNOWN), || {
        NEWEST.iter().find_map(|newest| image_of(newest))
    });
    let (Some(Choice { package, sha256 }), Some(_)) = (choice, child::find("dpkg-deb")) else {
        return Ok(Done::Skipped(
            "it comes from Debian's or Ubuntu's packages (apt-get update, if this is one); name a \
             kernel of your own with WORKSHOP_KERNEL=/boot/vmlinuz-…",
        ));
    };
    if sha256.is_none() {
        eprintln!(
            "note: {KNOWN}, whose hash is known here, is not among this system's packages; {package} is \
             taken instead, for which apt's signature alone speaks"
        );
    }
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
    let archive = file_in(folder.path(), |name| {
        Path::new(name).extension() == Some("deb".as_ref())
    });
    let archive = archive.unwrap_or_default();
    if let Some(sha256) = sha256 {
        is_known(&archive, &package, sha256)?;
    }
    let unpacked = folder.path().join("unpacked");
    call(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(archive)
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

/// That a downloaded package is the one that is known, byte by byte.
fn is_known(archive: &Path, package: &str, sha256: &str) -> Result<(), CliError> {
    let bytes = std::fs::read(archive).map_err(|error| {
        CliError::bad(format!(
            "{package} was downloaded, and cannot be read ({error}): run `cargo workshop setup kernel` \
             again"
        ))
    })?;
    let is = provenance::digest(bytes);
    if is == sha256 {
        return Ok(());
    }
    Err(CliError::bad(format!(
        "{package} is not what it was when its hash was taken, so nothing of it is installed: its \
         SHA-256 is {is}, not {sha256}; try another mirror, or name a kernel of your own with \
         WORKSHOP_KERNEL=/boot/vmlinuz-…"
    )))
}

/// Whether this system's package lists have this package in this version.
fn is_offered(package: &str) -> bool {
    apt_cache(["show", package]).is_some_and(|said| !said.is_empty())
}

/// The package of a kernel that `newest` depends on.
fn image_of(newest: &str) -> Option<String> {
    image_in(&apt_cache(["depends", newest])?)
}

/// What `apt-cache` prints; `None` where it fails or is not there.
fn apt_cache(arguments: [&str; 2]) -> Option<String> {
    let said = Command::new("apt-cache")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
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

    #[test]
    fn the_known_kernel_is_taken_while_it_is_offered_and_then_the_newest() {
        let newest = || Some("linux-image-6.1.0-99-cloud-amd64".to_owned());
        let choice = |has_known, newest| Choice::of(has_known, newest).unwrap();
        let known = choice(true, newest);
        assert_eq!(
            (known.package.as_str(), known.sha256),
            (KNOWN, Some(SHA256))
        );
        let moved_on = choice(false, newest);
        assert_eq!(moved_on.package, "linux-image-6.1.0-99-cloud-amd64");
        assert_eq!(moved_on.sha256, None);
        assert_eq!(Choice::of(false, || None), None);
    }

    #[test]
    fn another_file_than_the_known_one_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "abc").unwrap();
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        is_known(file.path(), KNOWN, of_abc).unwrap();
        let refused = is_known(file.path(), KNOWN, SHA256)
            .unwrap_err()
            .to_string();
        for word in [KNOWN, SHA256, of_abc, "nothing of it is installed"] {
            assert!(refused.contains(word), "{refused}");
        }
    }
}
