//! A process by its number: where its program lies in memory, and its threads.

use std::fs;
use std::path::PathBuf;

use crate::Error;

/// Most threads that are looked at.
const MOST_THREADS: usize = 16_384;

/// Keys of the auxiliary vector: where the program's headers are (`AT_PHDR`).
const AT_PHDR: u64 = 3;

/// A process by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn new(pid: u32) -> Self {
        Self(pid)
    }

    pub(crate) fn pid(self) -> u32 {
        self.0
    }

    /// Returns the path of a file that the kernel keeps for the process.
    pub(crate) fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }

    /// Turns the system's error on one of the process's files into a sentence.
    pub(crate) fn error(self, reason: std::io::Error) -> Error {
        let pid = self.0;
        match reason.kind() {
            std::io::ErrorKind::NotFound => Error::NoProcess(pid),
            _ => Error::Denied { pid, reason },
        }
    }

    /// Returns the address of the program's headers in memory.
    pub(crate) fn headers(self) -> Result<u64, Error> {
        let vector = fs::read(self.path("auxv")).map_err(|reason| self.error(reason))?;
        let mut words = vector
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok());
        while let (Some(key), Some(value)) = (words.next(), words.next()) {
            if u64::from_ne_bytes(key) == AT_PHDR {
                return Ok(u64::from_ne_bytes(value));
            }
        }
        // A process that has just ended has an empty vector.
        Err(Error::NoProcess(self.0))
    }

    /// Returns the numbers of its threads.
    pub(crate) fn threads(self) -> Vec<i32> {
        let mut threads = Vec::new();
        for entry in fs::read_dir(self.path("task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if let Ok(tid) = entry.file_name().to_string_lossy().parse() {
                threads.push(tid);
            }
            if threads.len() == MOST_THREADS {
                break;
            }
        }
        threads.sort_unstable();
        threads
    }
}
