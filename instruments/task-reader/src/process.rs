//! A process by its number: its files, where its program lies in memory, and its stops.

use std::fs;
use std::path::PathBuf;

use diagnosis::threads::{Piece, Standstill, why_refused};

use crate::Error;

/// Keys of the auxiliary vector: where the program's headers are (`AT_PHDR`).
const AT_PHDR: u64 = 3;

/// A process by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// Returns whether it is the calling process.
    pub(crate) fn is_this(self) -> bool {
        self.0 == std::process::id()
    }

    /// Returns the process as those know it who look at threads.
    pub(crate) fn diagnosis(self) -> diagnosis::Process {
        diagnosis::Process::of(self.0)
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

    /// Stops all threads, but the calling one, for as long as `pieces` are copied.
    pub(crate) fn stand_still(self, pieces: &mut [Piece]) -> Result<Standstill, Error> {
        let process = self.diagnosis();
        Standstill::of(process, pieces).map_err(|reason| match reason.raw_os_error() {
            Some(libc::ESRCH | libc::ENOENT) => Error::NoProcess(self.0),
            Some(error) if self.is_this() => Error::Refused(why_refused(process, error)),
            _ => self.error(reason),
        })
    }
}
