//! Where a body is stored between its arrival and its summary.

use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lab::CountedFile;
use serde::Deserialize;
use vmap::{Advise, Map};

use crate::Summary;

/// Bodies up to this length stay in memory.
///
/// What 64 requests at once may hold in this way is 64 times as much: 16 MiB.
pub const IN_MEMORY: u64 = 256 * 1024;

/// The length of the buffer through which a file is read back.
const BUFFER: usize = 64 * 1024;

/// The ways to keep a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// In memory, in the chunks in which it came.
    Ram,
    /// In memory, in one piece.
    RamGather,
    /// In a file that is read back through a small buffer.
    Fs,
    /// In a file that is mapped.
    Mmap,
    /// In a file that is mapped and then copied.
    MmapCopy,
}

/// A body, or the part of it that has come.
#[derive(Debug)]
pub enum Kept {
    /// In memory, in the chunks in which it came. Longer than `most`, it moves to a file in `files`.
    Chunks {
        /// What has come.
        chunks: Vec<Bytes>,
        /// How much may come.
        most: u64,
        /// The folder for what is longer.
        files: PathBuf,
    },
    /// In memory in one piece.
    Gathered(Vec<u8>),
    /// In a file.
    File {
        /// It has no name: no other process can open it, and it is gone when this is dropped.
        file: CountedFile,
        /// How to read it.
        keep: Keep,
    },
}

impl Kept {
    // ANCHOR: by_size
    /// Keeps a body in memory up to [`IN_MEMORY`], and in a file in `files` when it is longer.
    pub fn by_size(files: PathBuf) -> Self {
        Self::Chunks {
            chunks: Vec::new(),
            most: IN_MEMORY,
            files,
        }
    }
    // ANCHOR_END: by_size

    /// Keeps a body in one way, whatever its length.
    ///
    /// # Errors
    ///
    /// When no file can be made in `files`.
    pub fn always(keep: Keep, files: &Path) -> io::Result<Self> {
        Ok(match keep {
            Keep::Ram => Self::Chunks {
                chunks: Vec::new(),
                most: u64::MAX,
                files: files.to_owned(),
            },
            Keep::RamGather => Self::Gathered(Vec::new()),
            Keep::Fs | Keep::Mmap | Keep::MmapCopy => Self::in_file(keep, files)?,
        })
    }

    fn in_file(keep: Keep, files: &Path) -> io::Result<Self> {
        // ANCHOR: file
        // On Linux it never gets a name, elsewhere it loses its name at once or is removed by the
        // system when it is closed. However this process ends, the file ends with it.
        let file = tempfile::tempfile_in(files)?;
        // ANCHOR_END: file
        let file = CountedFile::from(file);
        Ok(Self::File { file, keep })
    }

    /// Whether what comes next is written to a file.
    pub fn is_in_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    // ANCHOR: push
    /// Keeps one more chunk. Blocks for as long as it takes to write it.
    ///
    /// # Errors
    ///
    /// When it cannot be written, for instance because the disk is full.
    pub fn push(&mut self, chunk: Bytes) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.write_all(&chunk),
            Self::Gathered(bytes) => {
                bytes.extend_from_slice(&chunk);
                Ok(())
            }
            Self::Chunks {
                chunks,
                most,
                files,
            } => {
                chunks.push(chunk);
                let length: usize = chunks.iter().map(Bytes::len).sum();
                if length as u64 > *most {
                    let chunks = std::mem::take(chunks);
                    *self = Self::in_file(Keep::Fs, files)?;
                    for chunk in chunks {
                        self.push(chunk)?;
                    }
                }
                Ok(())
            }
        }
    }
    // ANCHOR_END: push

    /// Keeps more chunks, one after the other. Takes and returns the body, so that it can be sent to
    /// another thread and back.
    ///
    /// # Errors
    ///
    /// As [`Kept::push`].
    pub fn with(mut self, chunks: Vec<Bytes>) -> io::Result<Self> {
        for chunk in chunks {
            self.push(chunk)?;
        }
        Ok(self)
    }

    // ANCHOR: summary
    /// Reads all that was kept, and gives it up. Blocks for as long as that takes.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or mapped.
    pub fn summary(self) -> io::Result<Summary> {
        let (mut file, keep) = match self {
            Self::Chunks { chunks, .. } => {
                let add = |summary: Summary, chunk: &Bytes| summary.with(chunk);
                return Ok(chunks.iter().fold(Summary::default(), add));
            }
            Self::Gathered(bytes) => return Ok(Summary::default().with(&bytes)),
            Self::File { file, keep } => (file, keep),
        };
        match keep {
            Keep::Mmap => Ok(Summary::default().with(&mapped(&file)?)),
            Keep::MmapCopy => {
                let copy = mapped(&file)?.to_vec();
                Ok(Summary::default().with(&copy))
            }
            Keep::Fs | Keep::Ram | Keep::RamGather => {
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
        }
    }
    // ANCHOR_END: summary
}

/// The file as memory. It has no name, so no other process can change it.
fn mapped(file: &CountedFile) -> io::Result<Map> {
    let map = Map::with_options().map(file.get_ref());
    let map = map.map_err(io::Error::other)?;
    file.count(map.len());
    // If the system ignores the advice, reading takes longer.
    let _ = map.advise(Advise::Sequential);
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Keep; 5] = [
        Keep::Ram,
        Keep::RamGather,
        Keep::Fs,
        Keep::Mmap,
        Keep::MmapCopy,
    ];

    fn chunks(length: usize) -> Vec<Bytes> {
        let mut bytes = vec![7; length];
        bytes[length / 2] = 200;
        let whole = Bytes::from(bytes);
        let ends = (0..length).step_by(10_000);
        ends.map(|from| whole.slice(from..length.min(from + 10_000)))
            .collect()
    }

    #[test]
    fn every_way_to_keep_a_body_gives_the_same_summary() {
        let folder = tempfile::tempdir().expect("a folder");
        let ways = KINDS.map(|keep| Kept::always(keep, folder.path()).expect("a file"));
        for kept in ways
            .into_iter()
            .chain([Kept::by_size(folder.path().into())])
        {
            let kept = kept.with(chunks(1_000_001)).expect("room on the disk");
            let summary = kept.summary().expect("it can be read");
            let said = summary.to_string();
            assert_eq!(said, "200 is the highest of 1000001 bytes");
        }
    }

    #[test]
    fn small_bodies_stay_in_memory_and_large_ones_leave_no_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = Kept::by_size(folder.path().into());
        let half = Bytes::from(vec![1; 128 * 1024]);
        for is_in_file in [false, false, true, true] {
            kept.push(half.clone()).expect("room on the disk");
            assert_eq!(kept.is_in_file(), is_in_file);
        }
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said() {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let file = full.expect("Linux").into();
        let keep = Keep::Fs;
        let mut kept = Kept::File { file, keep };
        let refused = kept.push(Bytes::from_static(b"a")).expect_err("it is full");
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    }
}
