//! A file that tells which thread wrote and read how much of it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

thread_local! {
    /// Bytes that this thread has written to files and read from them so far.
    static BYTES_HERE: Cell<u64> = const { Cell::new(0) };
}

/// Bytes of files that the calling thread has written and read so far.
pub(crate) fn bytes_on_this_thread() -> u64 {
    BYTES_HERE.get()
}

/// A file whose bytes are counted for the thread that writes or reads them, so that `/metrics` can
/// tell how many of them the reactor's own thread did.
#[derive(Debug)]
pub struct CountedFile(File);

impl CountedFile {
    /// The file itself; what is done to it directly is not counted.
    pub fn get_ref(&self) -> &File {
        &self.0
    }

    /// Counts `bytes` that the calling thread reads without a call, such as through a mapping.
    pub fn count(&self, bytes: usize) {
        BYTES_HERE.set(BYTES_HERE.get() + bytes as u64);
    }
}

impl From<File> for CountedFile {
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.read(buffer)?;
        self.count(bytes);
        Ok(bytes)
    }
}

impl Write for CountedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = self.0.write(buffer)?;
        self.count(bytes);
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for CountedFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}
