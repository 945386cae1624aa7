//! Programs that a server consists of, as Linux reports them under `/proc`. There are none on other systems.

use std::fs;
use std::path::{Path, PathBuf};

use children::processes;
use sha2::{Digest as _, Sha256};

use super::CommandServer;

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
        let line = fs::read(process.join("cmdline")).ok()?;
        let mut words = Vec::new();
        for word in line.split(|byte| *byte == 0).skip(1) {
            words.push(String::from_utf8_lossy(word).into_owned());
        }
        Some(Self {
            file: fs::read_link(process.join("exe")).ok()?,
            image: process.join("exe"),
            folder: fs::read_link(process.join("cwd")).ok()?,
            words,
        })
    }
}

impl CommandServer {
    /// Returns the programs that listen on the server's port, among all that its command started. Returns all of them
    /// if none listens there, as behind a container's proxy.
    pub fn programs(&self) -> Vec<Program> {
        let sockets = sockets_on(self.address().port());
        let (mut listening, mut others) = (Vec::new(), Vec::new());
        for process in processes::from(self.id()).unwrap_or_default() {
            let process = PathBuf::from(format!("/proc/{}", process.id));
            if has_any(&process, &sockets) {
                listening.push(process);
            } else {
                others.push(process);
            }
        }
        let processes = if listening.is_empty() {
            others
        } else {
            listening
        };
        let mut programs = Vec::new();
        for process in processes {
            programs.extend(Program::of(&process));
        }
        programs
    }
}

/// Returns the sockets that listen on `port`, as a process's list of open files names them.
fn sockets_on(port: u16) -> Vec<PathBuf> {
    const LISTENS: &str = "0A";

    let port = format!(":{port:04X}");
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines() {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            if let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..]
                && local.ends_with(&port)
                && state == LISTENS
            {
                sockets.push(format!("socket:[{inode}]").into());
            }
        }
    }
    sockets
}

fn has_any(process: &Path, files: &[PathBuf]) -> bool {
    let Ok(open) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    for entry in open.flatten() {
        if let Ok(file) = fs::read_link(entry.path())
            && files.contains(&file)
        {
            return true;
        }
    }
    false
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
