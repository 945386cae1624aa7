//! The process that is looked at.

/// A process, and its files in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of the process; `None` for the calling process, which cannot trace its own threads: a child does.
    other: Option<u32>,
}

impl Process {
    /// Returns the calling process.
    pub fn this() -> Self {
        Self { other: None }
    }

    /// Returns the process with the number `pid`.
    pub fn of(pid: u32) -> Self {
        if pid == std::process::id() {
            return Self::this();
        }
        Self { other: Some(pid) }
    }

    /// Returns its number.
    pub fn pid(self) -> u32 {
        match self.other {
            Some(pid) => pid,
            None => std::process::id(),
        }
    }

    /// Returns whether it is the calling process.
    pub fn is_this(self) -> bool {
        self.other.is_none()
    }

    /// Returns the path of one of its files in `/proc`.
    pub fn path(self, file: &str) -> String {
        format!("/proc/{}/{file}", self.pid())
    }

    /// Reads one of its files in `/proc` as text. Names in it need not be UTF-8: the system cuts them after 15 bytes, which
    /// may be inside a letter.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such file, or it cannot be read.
    pub fn text(self, file: &str) -> std::io::Result<String> {
        let bytes = std::fs::read(self.path(file))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_process_is_known_by_its_number() {
        let own = Process::of(std::process::id());
        assert_eq!(own, Process::this());
        assert!(!Process::of(1).is_this() || std::process::id() == 1);
        assert_eq!(Process::of(1).path("maps"), "/proc/1/maps");
    }
}
