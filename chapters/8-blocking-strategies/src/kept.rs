//! A body in a file, between its arrival and its summary.

use std::fmt;
use std::io::{self, Read, Seek, Write};

use bytes::Bytes;
use lab::CountedFile;

/// The length of the buffer through which a file is read back.
const BUFFER: usize = 64 * 1024;

/// A body, or the part of it that has come.
#[derive(Debug)]
pub struct Kept(pub CountedFile);

impl From<CountedFile> for Kept {
    fn from(file: CountedFile) -> Self {
        Self(file)
    }
}

impl Kept {
    // ANCHOR: push
    /// Writes one more chunk. Blocks for as long as that takes.
    ///
    /// # Errors
    ///
    /// When it cannot be written, for instance because the disk is full.
    pub fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.0.write_all(chunk)
    }
    // ANCHOR_END: push

    // ANCHOR: with
    /// Writes more chunks, one after the other. Blocks as [`Kept::push`]. Takes and returns the file,
    /// so that it can be sent to another thread and back.
    ///
    /// # Errors
    ///
    /// As [`Kept::push`].
    pub fn with(mut self, chunks: Vec<Bytes>) -> io::Result<Self> {
        for chunk in chunks {
            self.push(&chunk)?;
        }
        Ok(self)
    }
    // ANCHOR_END: with

    // ANCHOR: summary
    /// Reads all of it back, and gives it up. Blocks for as long as that takes.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn summary(self) -> io::Result<Summary> {
        let Self(mut file) = self;
        file.rewind()?;
        let mut summary = Summary::default();
        let mut buffer = vec![0; BUFFER];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(summary),
                length => summary = summary.with(&buffer[..length]),
            }
        }
    }
    // ANCHOR_END: summary
}

/// The highest byte of a body and its length. Every byte of it is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    highest: u8,
    length: u64,
}

impl Summary {
    /// The summary of `bytes` and all that was added before.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        Self {
            // Unlike `Iterator::max`, the compiler turns this into a few instructions for many bytes.
            highest: bytes.iter().fold(self.highest, |a, b| a.max(*b)),
            length: self.length + bytes.len() as u64,
        }
    }
}

/// The service's answer.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { highest, length } = self;
        write!(f, "{highest} is the highest of {length} bytes")
    }
}
