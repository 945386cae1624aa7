//! Files of a process that others may have put there, opened only if reading them ends and takes bounded memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::LittleEndian;
use object::elf::{FileHeader64, PN_XNUM, SHT_NOBITS};
use object::read::ReadCache;
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader};

/// Size of the largest program that is read, in bytes. Few with all debug information have one.
const LARGEST: u64 = 4 << 30;

/// Size of the largest section, as it is or decompressed, in bytes.
const LARGEST_SECTION: u64 = 2 << 30;

/// Most sections of a program.
const MOST_SECTIONS: u16 = 10_000;

/// Most bytes that a compressed byte may stand for, by zlib's format.
const MOST_COMPRESSED: u64 = 1032;

/// Sections that lead to another file.
const LINKS: [&[u8]; 3] = [b".gnu_debuglink", b".gnu_debugaltlink", b".debug_sup"];

/// A program or library whose headers were checked.
#[derive(Debug)]
pub struct ProgramFile {
    /// The file, open for reading.
    pub file: File,
    /// True if it names another file that has its debug information.
    pub has_links: bool,
}

impl ProgramFile {
    /// Opens a program or library of 64 bits.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no plain file, if it is too large, or if its headers lead out of it: those who read it
    /// might then take all memory.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = open_plain(path, LARGEST)?;
        match has_links(&file) {
            Some(has_links) => Ok(Self { file, has_links }),
            None => Err(io::Error::other("its headers are damaged")),
        }
    }
}

/// Opens a plain file of at most `most` bytes for reading. Opening a pipe could wait for ever, and opening a device could
/// do something; neither is opened, not even if it takes the file's place at this moment.
///
/// # Errors
///
/// Returns an error if it cannot be opened, is no plain file, or is larger.
pub fn open_plain(path: impl AsRef<Path>, most: u64) -> io::Result<File> {
    let mut place = OpenOptions::new();
    let place = place.read(true).custom_flags(libc::O_PATH).open(path)?;
    let found = place.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    if found.len() > most {
        return Err(io::Error::other("it is too large"));
    }
    File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// Returns whether the file has a section that leads to another file, or `None` if its headers are damaged.
fn has_links(file: &File) -> Option<bool> {
    let length = file.metadata().ok()?.len();
    let data = ReadCache::new(file);
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(&data).ok()?;
    // A file without sections has 0 as their place. More sections or parts than a 16-bit number holds have their number
    // elsewhere.
    let has_sections = header.e_shoff(endian) != 0;
    if has_sections && !(1..=MOST_SECTIONS).contains(&header.e_shnum(endian))
        || header.e_phnum(endian) == PN_XNUM
    {
        return None;
    }
    let is_inside = |offset: u64, size: u64| {
        offset
            .checked_add(size)
            .is_some_and(|end| end <= length && size <= LARGEST_SECTION)
    };
    for part in header.program_headers(endian, &data).ok()? {
        if !is_inside(part.p_offset(endian), part.p_filesz(endian)) {
            return None;
        }
    }
    let sections = header.sections(endian, &data).ok()?;
    let mut has_links = false;
    for section in sections.iter() {
        let (offset, size) = (section.sh_offset(endian), section.sh_size(endian));
        if section.sh_type(endian) != SHT_NOBITS && !is_inside(offset, size) {
            return None;
        }
        if let Some((header, _, compressed)) = section.compression(endian, &data).ok()? {
            let most = compressed.saturating_mul(MOST_COMPRESSED);
            if header.ch_size(endian) > most.min(LARGEST_SECTION) {
                return None;
            }
        }
        let name = sections.section_name(endian, section).ok()?;
        has_links |= LINKS.contains(&name);
    }
    Some(has_links)
}
