//! The program's file: its debug information as bytes, and where it was meant to lie in memory.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use object::elf::{PT_LOAD, PT_TLS, SHF_COMPRESSED, SectionFlags};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadCache};

use crate::Error;
use crate::mapped::Mapped;
use crate::process::Process;

/// Most bytes of one section that are read: 3 GiB.
const LARGEST_SECTION: u64 = 3 << 30;

/// Sections with what is read here.
const NEEDED: [&str; 7] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_str",
    ".debug_str_offsets",
];

/// Size of the program's thread-local variables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadLocals {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
}

/// A section's bytes.
#[derive(Debug)]
enum Section {
    Read(Vec<u8>),
    Mapped(Range<usize>),
}

/// The debug information of a program, and what its loader was told.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    sections: Vec<(&'static str, Section)>,
    /// The whole file, if it is the program of the calling process.
    mapped: Option<Mapped>,
    /// Address of its headers as linked.
    headers: u64,
    pub(crate) thread_locals: Option<ThreadLocals>,
}

impl Binary {
    /// Reads the debug information of the program that the process `pid` runs, even if its file was replaced since. That of
    /// the calling process is mapped, so that it takes no memory that the system could not take back.
    ///
    /// # Errors
    ///
    /// Fails if the process or its program cannot be read, or if the program has no debug information.
    pub fn of_process(pid: u32) -> Result<Self, Error> {
        let process = Process::new(pid);
        let link = process.path("exe");
        let shown = std::fs::read_link(&link).map_err(|reason| process.error(reason))?;
        let file = open(&link).map_err(|reason| process.error(reason))?;
        let mapped = process.is_this().then(|| Mapped::of(&file)).transpose();
        let mapped = mapped.map_err(|reason| process.error(reason))?;
        Self::parse(&file, shown, mapped)
    }

    /// Reads the debug information of a program's file.
    ///
    /// # Errors
    ///
    /// Fails if it is no such file, or if it has no debug information.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let file = open(path).map_err(|reason| Error::Unreadable {
            path: path.to_owned(),
            reason: reason.to_string(),
        })?;
        Self::parse(&file, path.to_owned(), None)
    }

    fn parse(file: &File, path: PathBuf, mapped: Option<Mapped>) -> Result<Self, Error> {
        let unreadable = |reason: &str| Error::Unreadable {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        let metadata = file
            .metadata()
            .map_err(|reason| unreadable(&reason.to_string()))?;
        if !metadata.is_file() {
            return Err(unreadable("it is no regular file"));
        }
        let cache = ReadCache::new(file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache)
            .map_err(|reason| unreadable(&format!("it is no 64-bit ELF program ({reason})")))?;
        let endian = elf.endian();
        if endian != Endianness::Little {
            return Err(unreadable("it is a big-endian program"));
        }
        let in_file = elf.elf_header().e_phoff(endian);
        let (mut headers, mut thread_locals) = (in_file, None);
        for segment in elf.elf_program_headers() {
            let start = segment.p_offset(endian);
            match segment.p_type(endian) {
                PT_LOAD
                    if (start..start.saturating_add(segment.p_filesz(endian)))
                        .contains(&in_file) =>
                {
                    headers = segment.p_vaddr(endian).wrapping_add(in_file - start);
                }
                PT_TLS => {
                    thread_locals = Some(ThreadLocals {
                        size: segment.p_memsz(endian),
                        alignment: segment.p_align(endian),
                    });
                }
                _ => {}
            }
        }
        let mut sections = Vec::new();
        for name in NEEDED {
            let Some(section) = elf.section_by_name(name) else {
                continue;
            };
            let header = section.elf_section_header();
            if header.sh_flags(endian) & SHF_COMPRESSED != SectionFlags(0) {
                return Err(unreadable(
                    "its debug information is compressed: link it without `--compress-debug-sections`",
                ));
            }
            let Some((start, size)) = section.file_range() else {
                continue;
            };
            let end = start.checked_add(size);
            if size > LARGEST_SECTION || end.is_none_or(|end| end > metadata.len()) {
                return Err(unreadable(&format!(
                    "its section {name} claims to be of {size} bytes"
                )));
            }
            let section = match &mapped {
                // Both are within the file, and the file fits.
                Some(_) => Section::Mapped(place(start)..place(start + size)),
                None => Section::Read(
                    bytes(file, start, size).map_err(|reason| unreadable(&reason.to_string()))?,
                ),
            };
            sections.push((name, section));
        }
        let binary = Self {
            path,
            sections,
            mapped,
            headers,
            thread_locals,
        };
        if binary.section(".debug_info").is_empty() {
            return Err(binary.no_types(""));
        }
        Ok(binary)
    }

    /// Returns the program's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of a section, none if the program lacks it.
    pub(crate) fn section(&self, name: &str) -> &[u8] {
        let found = self.sections.iter().find(|(other, _)| *other == name);
        match found.map(|(_, section)| section) {
            Some(Section::Read(bytes)) => bytes,
            Some(Section::Mapped(range)) => {
                let mapped = self.mapped.as_ref();
                mapped
                    .and_then(|mapped| mapped.bytes().get(range.clone()))
                    .unwrap_or_default()
            }
            None => &[],
        }
    }

    /// Lets the system have the memory of what was read so far, where it can be read again.
    pub(crate) fn give_back(&self) {
        if let Some(mapped) = &self.mapped {
            mapped.give_back();
        }
    }

    /// Returns the error for a program without types.
    pub(crate) fn no_types(&self, hint: &'static str) -> Error {
        Error::NoTypes {
            path: self.path.clone(),
            hint,
        }
    }

    /// Returns by how much the program lies higher in the process's memory than it was linked.
    pub(crate) fn bias(&self, process: Process) -> Result<u64, Error> {
        Ok(process.headers()?.wrapping_sub(self.headers))
    }
}

/// Returns a place in a file as a place in memory.
fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Opens a file without waiting, in case it is a pipe.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// Reads bytes of a file. Memory is taken as they come, since a file may claim more than it has.
fn bytes(file: &File, start: u64, size: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = At { file, at: start }.take(size);
    reader.read_to_end(&mut bytes)?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// Reader of a file from a place on, which leaves the file's own place alone.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl std::io::Read for At<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(to, self.at)?;
        self.at += u64::try_from(read).unwrap_or_default();
        Ok(read)
    }
}
