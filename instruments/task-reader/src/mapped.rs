//! A file as memory, which the system keeps and takes back as it needs.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

/// A program's file, mapped.
///
/// It is for the program that the calling process runs: the system lets nobody write to or cut such a file, and if it did,
/// the program's own code would be gone as well. Any other file is read.
#[derive(Debug)]
pub(crate) struct Mapped {
    start: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: a new place of memory, for reading.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, length })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: it is mapped until this is dropped, and the file stays as it is.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }

    /// Lets the system have the memory of what was read so far. Reading it again brings it back.
    pub(crate) fn give_back(&self) {
        // SAFETY: it is mapped, and nobody has written to it.
        unsafe { libc::madvise(self.start, self.length, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is mapped, and no borrow of it is left.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn the_file_of_the_program_that_runs_can_be_read_and_cannot_be_cut() {
        let own = std::env::current_exe().expect("Linux");
        let refused = OpenOptions::new()
            .write(true)
            .open(&own)
            .expect_err("it runs");
        assert_eq!(refused.kind(), io::ErrorKind::ExecutableFileBusy);
        let mapped = Mapped::of(&File::open(own).expect("a file")).expect("memory");
        assert_eq!(mapped.bytes().get(..4), Some(&b"\x7fELF"[..]));
        mapped.give_back();
        assert_eq!(mapped.bytes().get(..4), Some(&b"\x7fELF"[..]));
    }
}
