//! Shared libraries of a process that have tokio inside.

use std::collections::HashSet;

use diagnosis::maps::{self, Part};
use diagnosis::threads::ProgramFile;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ReadCache};

use crate::names;
use crate::process::Process;

/// Most libraries that are looked at.
const MOST_LIBRARIES: usize = 256;

/// Size of the largest table of names that is searched, in bytes.
const MOST_NAMES: u64 = 64 << 20;

/// Part of the names of all functions of tokio's runtime, in both forms that the compiler has.
const RUNTIME: &[u8] = b"tokio7runtime";

/// Returns the libraries that have functions of tokio's runtime, as far as they have names.
pub(crate) fn with_tokio(process: Process) -> Vec<String> {
    let looked_at = process.diagnosis();
    let program = std::fs::read_link(process.path("exe")).unwrap_or_default();
    let maps = maps::read(looked_at);
    let (mut known, mut found) = (HashSet::new(), Vec::new());
    for part in maps.lines().filter_map(Part::parse) {
        let is_library = part.permissions.contains('x')
            && part.name.starts_with('/')
            && program.as_os_str() != part.name;
        if !is_library || known.len() >= MOST_LIBRARIES || !known.insert(part.name.to_owned()) {
            continue;
        }
        let path = if looked_at.is_this() {
            part.name.to_owned()
        } else {
            looked_at.path("root") + part.name
        };
        if has_tokio(&path).unwrap_or_default() {
            found.push(names::printable(part.name.as_bytes()));
        }
    }
    found
}

fn has_tokio(path: &str) -> Option<bool> {
    let file = ProgramFile::open(path).ok()?.file;
    let cache = ReadCache::new(&file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let has_tokio = |name| {
        let section = elf.section_by_name(name);
        let section = section.filter(|section| section.size() <= MOST_NAMES)?;
        let names = section.data().ok()?;
        Some(names.windows(RUNTIME.len()).any(|name| name == RUNTIME))
    };
    let names = [".dynstr", ".strtab"].into_iter();
    Some(names.filter_map(has_tokio).any(|has_tokio| has_tokio))
}
