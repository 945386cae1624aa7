//! Names of functions in shared libraries, from copies of their files in memory.
//!
//! `backtrace` maps the files that it reads. If somebody cuts a mapped file, reading it ends the process. A library's file
//! can be cut while it runs. The program's own cannot: the system lets nobody write to it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::Context;
use ecosystem::maps;
use gimli::{Dwarf, EndianArcSlice, NativeEndian};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use crate::function::Function;

/// Size of the largest file that is read, in bytes. A larger library is left to `backtrace`.
const LARGEST: u64 = 64 << 20;

/// Flag that opens a file without waiting for the other end of a pipe: `O_NONBLOCK` of most architectures. On MIPS and SPARC it
/// is a flag without an effect on reading.
const WITHOUT_WAITING: i32 = 0o4000;

/// Folder of files with debug information, by the build id of a library.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// Libraries that were read since [`forget`] was called last.
static KNOWN: Mutex<Option<Libraries>> = Mutex::new(None);

/// Calls `each` with the functions at an address, the innermost first. Returns false if it is in no library.
pub(crate) fn functions(address: u64, each: &mut dyn FnMut(Function<'_>)) -> bool {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let libraries = known.get_or_insert_with(Libraries::of_this_process);
    libraries.functions(address, each)
}

/// Gives the memory of all libraries back.
pub(crate) fn forget() {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Shared libraries of this process. Each is read when a name in it is asked for.
struct Libraries {
    parts: Vec<Part>,
    read: HashMap<PathBuf, Option<Library>>,
}

/// Code of a library in memory.
struct Part {
    start: u64,
    end: u64,
    /// Place of `start` in the file.
    offset: u64,
    path: PathBuf,
}

/// A library that was read.
struct Library {
    segments: Vec<Segment>,
    /// Lines and inlined functions, if it has debug information.
    lines: Option<Context<Section>>,
    /// Functions by their addresses.
    symbols: Vec<Symbol>,
}

/// Bytes of a section with debug information.
type Section = EndianArcSlice<NativeEndian>;

struct Segment {
    offset: u64,
    size: u64,
    /// Address as linked.
    address: u64,
}

struct Symbol {
    start: u64,
    end: u64,
    name: String,
}

impl Libraries {
    /// Lists the libraries of this process that are not too large.
    fn of_this_process() -> Self {
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mut parts: Vec<Part> = maps.lines().filter_map(Part::parse).collect();
        parts.retain(|part| part.path != program && !is_large(&part.path));
        Self {
            parts,
            read: HashMap::new(),
        }
    }

    fn functions(&mut self, address: u64, each: &mut dyn FnMut(Function<'_>)) -> bool {
        let mut parts = self.parts.iter();
        let Some(part) = parts.find(|part| (part.start..part.end).contains(&address)) else {
            return false;
        };
        let library = match self.read.get(&part.path) {
            Some(library) => library,
            None => self
                .read
                .entry(part.path.clone())
                .or_insert_with_key(|path| Library::read(path)),
        };
        if let Some(library) = library {
            library.functions(address - part.start + part.offset, each);
        }
        true
    }
}

/// Returns whether a file is too large to be read.
fn is_large(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > LARGEST)
}

impl Part {
    /// Reads a line of the kernel's list of parts, if it is for a file's code.
    fn parse(line: &str) -> Option<Self> {
        let part = maps::Part::parse(line)?;
        let is_code = part.permissions.contains('x') && part.name.starts_with('/');
        is_code.then(|| Self {
            start: part.start,
            end: part.end,
            offset: part.offset,
            path: PathBuf::from(part.name),
        })
    }
}

impl Library {
    /// Reads a library, or nothing if it is damaged.
    fn read(path: &Path) -> Option<Self> {
        let bytes = read_plain(path)?;
        let file = object::File::parse(&*bytes).ok()?;
        let mut segments = Vec::new();
        for segment in file.segments() {
            let (offset, size) = segment.file_range();
            segments.push(Segment {
                offset,
                size,
                address: segment.address(),
            });
        }
        let mut library = Self {
            segments,
            lines: None,
            symbols: Vec::new(),
        };
        library.add(&file);
        if library.lines.is_none()
            && let Some(bytes) = debug_file(&file).and_then(|path| read_plain(&path))
            && let Ok(file) = object::File::parse(&*bytes)
        {
            library.add(&file);
        }
        library.symbols.sort_by_key(|symbol| symbol.start);
        Some(library)
    }

    /// Adds the names in a file: the library's own, or the one with its debug information.
    fn add(&mut self, file: &object::File<'_>) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() == SymbolKind::Text
                && symbol.is_definition()
                && let Ok(name) = symbol.name()
            {
                self.symbols.push(Symbol {
                    start: symbol.address(),
                    end: symbol.address().saturating_add(symbol.size()),
                    name: name.to_owned(),
                });
            }
        }
        if file.section_by_name(".debug_info").is_none() {
            return;
        }
        let dwarf = Dwarf::load(|id| {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            let data: Arc<[u8]> = Arc::from(data.unwrap_or_default());
            Ok::<_, ()>(EndianArcSlice::new(data, NativeEndian))
        });
        self.lines = dwarf.ok().and_then(|dwarf| Context::from_dwarf(dwarf).ok());
    }

    /// Calls `each` with the functions at a place in the file, the innermost first.
    fn functions(&self, place: u64, each: &mut dyn FnMut(Function<'_>)) {
        let mut segments = self.segments.iter();
        let Some(segment) = segments.find(|one| {
            place
                .checked_sub(one.offset)
                .is_some_and(|within| within < one.size)
        }) else {
            return;
        };
        let address = place - segment.offset + segment.address;
        let mut is_named = false;
        if let Some(lines) = &self.lines
            && let Ok(mut frames) = lines.find_frames(address).skip_all_loads()
        {
            while let Ok(Some(frame)) = frames.next() {
                let Some(name) = &frame.function else {
                    continue;
                };
                let Ok(name) = name.raw_name() else {
                    continue;
                };
                let at = frame.location.as_ref();
                is_named = true;
                each(Function {
                    name: demangled(&name),
                    raw: name,
                    file: at.and_then(|at| at.file).map(Into::into),
                    line: at.and_then(|at| at.line),
                });
            }
        }
        if !is_named && let Some(symbol) = self.symbol(address) {
            each(Function {
                name: demangled(&symbol.name),
                raw: (&*symbol.name).into(),
                file: None,
                line: None,
            });
        }
    }

    fn symbol(&self, address: u64) -> Option<&Symbol> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.start <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        (address < symbol.end).then_some(symbol)
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// Returns the file with a library's debug information, by its build id.
fn debug_file(file: &object::File<'_>) -> Option<PathBuf> {
    let id = file.build_id().ok()??;
    let (first, others) = id.split_first()?;
    let mut name = String::new();
    for byte in others {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    let path = format!("{DEBUG_FILES}/{first:02x}/{name}.debug");
    Some(PathBuf::from(path))
}

/// Reads a plain file that is not too large. Another may have taken the place of the one that runs, of any kind.
fn read_plain(path: &Path) -> Option<Vec<u8>> {
    let mut opening = OpenOptions::new();
    let file: File = opening
        .read(true)
        .custom_flags(WITHOUT_WAITING)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    // It may have grown.
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    fn names(libraries: &mut Libraries, address: usize) -> Vec<String> {
        let mut names = Vec::new();
        libraries.functions(address as u64, &mut |function| names.push(function.name));
        names
    }

    /// A library whose file is a copy of this program, at the program's addresses.
    fn copied(folder: &Path) -> Libraries {
        let own = env::current_exe().expect("a path");
        let copy = folder.join("library.so");
        fs::copy(&own, &copy).expect("copied");
        let maps = fs::read_to_string("/proc/self/maps").expect("this is Linux");
        let mut parts: Vec<Part> = maps.lines().filter_map(Part::parse).collect();
        parts.retain(|part| part.path == own);
        for part in &mut parts {
            part.path.clone_from(&copy);
        }
        Libraries {
            parts,
            read: HashMap::new(),
        }
    }

    #[test]
    fn a_library_that_is_cut_while_names_are_looked_up_keeps_its_names() {
        let folder = env::temp_dir().join(format!("await-profile-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let mut libraries = copied(&folder);
        let first = names(&mut libraries, demangled as *const () as usize);
        assert!(
            first
                .iter()
                .any(|name| name.contains("libraries::demangled")),
            "{first:?}"
        );
        // Whoever maps it ends by SIGBUS now.
        File::create(folder.join("library.so")).expect("cut");
        let other = names(&mut libraries, is_large as *const () as usize);
        assert!(
            other
                .iter()
                .any(|name| name.contains("libraries::is_large")),
            "{other:?}"
        );
        // One that was cut before has no names, nor has one whose place a pipe has taken.
        libraries.read.clear();
        assert_eq!(
            names(&mut libraries, is_large as *const () as usize),
            [""; 0]
        );
        fs::remove_file(folder.join("library.so")).expect("removed");
        let pipe = std::process::Command::new("mkfifo")
            .arg(folder.join("library.so"))
            .status();
        assert!(pipe.is_ok_and(|made| made.success()));
        libraries.read.clear();
        assert_eq!(
            names(&mut libraries, is_large as *const () as usize),
            [""; 0]
        );
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn names_in_the_c_library_are_known_and_the_program_is_left_to_others() {
        let mut libraries = Libraries::of_this_process();
        let own = names_in_the_c_library_are_known_and_the_program_is_left_to_others as *const ();
        assert!(!libraries.functions(own as u64, &mut |_| {}));
        let is_libc = |part: &&Part| part.path.to_string_lossy().contains("/libc.so");
        let Some(part) = libraries.parts.iter().find(is_libc) else {
            // It is linked statically, or another one.
            return;
        };
        let libc = Library::read(&part.path).expect("whole");
        let mut symbols = libc.symbols.iter();
        let symbol = symbols.find(|symbol| symbol.name == "getpid");
        let place = symbol.expect("a symbol").start;
        let is_there = |one: &&Segment| (one.address..one.address + one.size).contains(&place);
        let segment = libc.segments.iter().find(is_there).expect("code");
        let in_file = place - segment.address + segment.offset;
        let address = usize::try_from(in_file - part.offset + part.start).expect("64 bits");
        let names = names(&mut libraries, address);
        assert!(
            names.iter().any(|name| name.contains("getpid")),
            "{names:?}"
        );
    }
}
