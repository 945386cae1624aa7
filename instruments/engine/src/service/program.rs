//! Programs that a server consists of, as Linux reports them under `/proc`. There are none on other systems.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::CommandServer;
use crate::child::processes;

/// A running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// File that it was started from, which may have been replaced since.
    pub file: PathBuf,
    /// Path to the program as the process has it, readable while the process runs.
    pub image: PathBuf,
    /// Its working folder.
    pub folder: PathBuf,
    /// Its arguments, without its own name.
    pub words: Vec<String>,
}

impl Program {
    fn of(process: &Path) -> Option<Self> {
        let words = fs::read(process.join("cmdline")).ok()?;
        let words = words.split(|byte| *byte == 0).skip(1);
        Some(Self {
            file: fs::read_link(process.join("exe")).ok()?,
            image: process.join("exe"),
            folder: fs::read_link(process.join("cwd")).ok()?,
            words: words
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
        })
    }
}

impl CommandServer {
    /// Returns the programs that listen on the server's port, among all that its command started. Returns all of them
    /// if none listens there, as behind a container's proxy.
    pub fn programs(&self) -> Vec<Program> {
        let started = processes::from(self.id()).unwrap_or_default();
        let started = started.iter().map(|one| format!("/proc/{}", one.id));
        let started: Vec<PathBuf> = started.map(PathBuf::from).collect();
        let sockets = sockets_on(self.address().port());
        let mut listening = started.clone();
        listening.retain(|process| has_any(process, &sockets));
        let told = if listening.is_empty() {
            &started
        } else {
            &listening
        };
        told.iter().filter_map(|one| Program::of(one)).collect()
    }
}

/// Returns the sockets that listen on `port`, as a process's list of open files names them.
fn sockets_on(port: u16) -> Vec<PathBuf> {
    const LISTENS: &str = "0A";

    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let port = format!(":{port:04X}");
    let lines = tables.iter().flat_map(|table| table.lines());
    let inodes = lines.filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&port) && *fields.get(3)? == LISTENS;
        is_it.then(|| fields.get(9).copied())?
    });
    inodes
        .map(|inode| format!("socket:[{inode}]").into())
        .collect()
}

fn has_any(process: &Path, files: &[PathBuf]) -> bool {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten();
    let mut open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.any(|file| files.contains(&file))
}

/// Returns the SHA-256 of a text or of bytes, in hexadecimal.
pub fn digest(of: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 180-2, appendix B.1.
    #[test]
    fn the_digest_is_sha_256() {
        assert_eq!(
            digest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
