//! The program's file: its debug information as bytes, and where it was meant to lie in memory.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use diagnosis::threads::ProgramFile;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::elf::{CompressionHeader64, ELFCOMPRESS_ZLIB, PT_LOAD, PT_TLS};
use object::read::elf::{
    CompressionHeader as _, ElfFile64, FileHeader as _, ProgramHeader as _, SectionHeader as _,
};
use object::{Endianness, Object as _, ObjectSection as _, ReadCache};

use crate::Error;
use crate::libraries;
use crate::mapped::Mapped;
use crate::process::Process;

/// Sections with what is read here.
const NEEDED: [&str; 12] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_aranges",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_loc",
    ".debug_loclists",
    ".debug_ranges",
    ".debug_rnglists",
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
    /// Addresses of the program as linked: code and constants, and variables behind them.
    pub(crate) image: std::ops::Range<u64>,
    pub(crate) thread_locals: Option<ThreadLocals>,
    /// Shared libraries of the process that have a tokio of their own.
    pub(crate) libraries: Vec<String>,
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
        let unreadable = |reason: io::Error| match reason.kind() {
            io::ErrorKind::Other => unreadable(&shown, &reason),
            _ => process.error(reason),
        };
        let file = ProgramFile::open(&link).map_err(unreadable)?.file;
        let mapped = process.is_this().then(|| Mapped::of(&file)).transpose();
        let mapped = mapped.map_err(|reason| process.error(reason))?;
        let libraries = libraries::with_tokio(process);
        match (Self::parse(&file, shown, mapped), libraries.first()) {
            (Ok(binary), _) => Ok(Self {
                libraries,
                ..binary
            }),
            (Err(Error::NoTypes { .. }), Some(library)) => Err(Error::InLibrary(library.clone())),
            (Err(error), _) => Err(error),
        }
    }

    /// Reads the debug information of a program's file.
    ///
    /// # Errors
    ///
    /// Fails if it is no such file, or if it has no debug information.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let file = ProgramFile::open(path).map_err(|reason| unreadable(path, &reason))?;
        Self::parse(&file.file, path.to_owned(), None)
    }

    /// Reads a file whose headers were checked.
    fn parse(file: &File, path: PathBuf, mapped: Option<Mapped>) -> Result<Self, Error> {
        let unreadable = |reason: &dyn Display| unreadable(&path, reason);
        let cache = ReadCache::new(file);
        let elf =
            ElfFile64::<Endianness, _>::parse(&cache).map_err(|reason| unreadable(&reason))?;
        let endian = elf.endian();
        let in_file = elf.elf_header().e_phoff(endian);
        let (mut headers, mut thread_locals) = (in_file, None);
        let mut image: Option<std::ops::Range<u64>> = None;
        for segment in elf.elf_program_headers() {
            if segment.p_type(endian) == PT_LOAD {
                let from = segment.p_vaddr(endian);
                let to = from.saturating_add(segment.p_memsz(endian));
                let whole = image.unwrap_or(from..to);
                image = Some(whole.start.min(from)..whole.end.max(to));
            }
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
            let compression = section
                .elf_section_header()
                .compression(endian, &cache)
                .map_err(|reason| unreadable(&reason))?;
            let in_file = match compression {
                Some((_, start, size)) => Some((start, size)),
                None => section.file_range(),
            };
            let Some((start, size)) = in_file else {
                continue;
            };
            let section = match &mapped {
                _ if compression.is_some() => {
                    let compressed =
                        bytes(file, start, size).map_err(|reason| unreadable(&reason))?;
                    let header = compression.map(|(header, ..)| header);
                    let section = decompressed(&compressed, header, endian);
                    Section::Read(section.map_err(|reason| unreadable(&reason))?)
                }
                Some(_) => Section::Mapped(place(start)..place(start.saturating_add(size))),
                None => {
                    let section = bytes(file, start, size);
                    Section::Read(section.map_err(|reason| unreadable(&reason))?)
                }
            };
            sections.push((name, section));
        }
        let binary = Self {
            path,
            sections,
            mapped,
            headers,
            image: image.unwrap_or_default(),
            thread_locals,
            libraries: Vec::new(),
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

/// Returns the error for a file that is no program, or a damaged one.
fn unreadable(path: &Path, reason: &dyn Display) -> Error {
    Error::Unreadable {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Decompresses a section, whose size was checked.
fn decompressed(
    compressed: &[u8],
    header: Option<&CompressionHeader64<Endianness>>,
    endian: Endianness,
) -> Result<Vec<u8>, &'static str> {
    let header = header.ok_or("it has no header")?;
    if header.ch_type(endian) != ELFCOMPRESS_ZLIB {
        return Err(
            "its debug information is compressed by zstd: link it with `--compress-debug-sections=zlib`, or without it",
        );
    }
    decompress_to_vec_zlib_with_limit(compressed, place(header.ch_size(endian)))
        .map_err(|_| "a compressed section is damaged")
}

/// Reads bytes of a file. Memory is taken as they come, since a file may claim more than it has.
fn bytes(file: &File, start: u64, size: u64) -> io::Result<Vec<u8>> {
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

impl io::Read for At<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(to, self.at)?;
        self.at += u64::try_from(read).unwrap_or_default();
        Ok(read)
    }
}
