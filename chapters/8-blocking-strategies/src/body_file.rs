//! A body in a file, between its arrival and its summary.

use std::fmt;
use std::io::{self, Read, Seek, Write};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use lab::CountedFile;

/// The length of the buffer through which a file is read back.
const BUFFER: usize = 64 * 1024;

/// A body, or the part of it that has come.
#[derive(Debug)]
pub struct BodyFile(CountedFile);

impl From<CountedFile> for BodyFile {
    fn from(file: CountedFile) -> Self {
        Self(file)
    }
}

impl BodyFile {
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

    // ANCHOR: append
    /// Writes more chunks, one after the other. Blocks as [`BodyFile::push`]. Takes and returns the
    /// file, so that it can be sent to another thread and back.
    ///
    /// # Errors
    ///
    /// As [`BodyFile::push`].
    pub fn append(mut self, chunks: Vec<Bytes>) -> io::Result<Self> {
        for chunk in chunks {
            self.push(&chunk)?;
        }
        Ok(self)
    }
    // ANCHOR_END: append

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
                length => summary.update(&buffer[..length]),
            }
        }
    }
    // ANCHOR_END: summary
}

/// The highest byte of a body, its position, and the body's length. Every byte of it is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    highest: u8,
    position: u64,
    length: u64,
}

impl Summary {
    /// Takes the next bytes of the body into account.
    pub fn update(&mut self, bytes: &[u8]) {
        // Unlike `Iterator::max`, the compiler turns this into a few instructions for many bytes.
        let highest = bytes.iter().fold(self.highest, |a, b| a.max(*b));
        if highest > self.highest {
            let here = bytes.iter().position(|byte| *byte == highest);
            self.position = self.length + here.unwrap_or_default() as u64;
            self.highest = highest;
        }
        self.length += bytes.len() as u64;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            highest, length, ..
        } = self;
        write!(f, "{highest} is the highest of {length} bytes")
    }
}

/// The service's answer. The header `position` says where the highest byte is.
impl IntoResponse for Summary {
    fn into_response(self) -> Response {
        let position = [("position", self.position.to_string())];
        (position, self.to_string()).into_response()
    }
}
