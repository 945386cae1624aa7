//! Names of another program's functions, by blazesym, from the files that the process has in memory.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use await_profile::{is_foreign, portable};
use blazesym::symbolize::source::{Elf, Process as BySystem, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolizer};
use diagnosis::Process;
use diagnosis::maps::{self, Part};
use diagnosis::threads::{NamedFrame, Names, ProgramFile, open_plain};

use super::target::{Status, Target};

/// Part of a file that is in memory and may be executed.
struct Code {
    start: u64,
    end: u64,
    offset: u64,
    /// Path in the process's own file system; empty for code that was made in memory.
    name: String,
    /// The file, held open: nothing leads to it once the process has ended, and another may take its place. None if it
    /// cannot be read.
    file: Option<ProgramFile>,
    /// The same as the symbolizer reads it, once it was asked for.
    source: Option<Copied>,
}

impl Code {
    fn new(part: &Part<'_>, file: Option<ProgramFile>) -> Self {
        Self {
            start: part.start,
            end: part.end,
            offset: part.offset,
            name: part.name.to_owned(),
            file,
            source: None,
        }
    }

    /// Returns the file for the symbolizer, if there is one that can be read.
    fn source(&mut self) -> Option<Elf> {
        if self.source.is_none() {
            self.source = Copied::of(self.file.as_ref()?).ok();
        }
        let Some(copied) = &self.source else {
            self.file = None;
            return None;
        };
        let mut source = Elf::new(format!("/proc/self/fd/{}", copied.program.file.as_raw_fd()));
        source.debug_syms = copied.may_lead_on;
        Some(source)
    }
}

/// Copy of a program's file. The symbolizer maps files into memory, and reading a mapped file that somebody cuts meanwhile
/// would end this program. Nobody else has this copy, and its headers are checked as those of the file were.
struct Copied {
    program: ProgramFile,
    /// True if the symbolizer may open what the file names: it opens anything, which may be a pipe.
    may_lead_on: bool,
}

impl Copied {
    fn of(program: &ProgramFile) -> io::Result<Self> {
        let (mut file, mut copy) = (&program.file, tempfile::tempfile()?);
        file.rewind()?;
        // It may have grown since its size was checked.
        io::copy(&mut file.take(file.metadata()?.len()), &mut copy)?;
        let copied = ProgramFile::open(format!("/proc/self/fd/{}", copy.as_raw_fd()))?;
        Ok(Self {
            may_lead_on: !copied.has_links || is_trusted(&program.file),
            program: copied,
        })
    }
}

/// Returns whether a file belongs to root or to the user who looks.
fn is_trusted(file: &fs::File) -> bool {
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    let owner = file.metadata().map(|file| file.uid());
    owner.is_ok_and(|owner| owner == 0 || own.is_ok_and(|own| owner == own))
}

/// Size of the largest file with the names of code that was made in memory, in bytes.
const LARGEST_PERF_MAP: u64 = 256 << 20;

/// Names of code that was made in memory, from the file that programs write for perf. The symbolizer would wait for a
/// pipe in its place, and read a file of any size.
#[derive(Default)]
struct PerfMap {
    /// First address, size and name of each function, by address.
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// Reads the file of a process. Another user may have written it for this process, and then it is left alone.
    fn of(process: Process) -> Self {
        let ids = Status::of(process);
        let own = ids
            .text("NSpid")
            .and_then(|ids| ids.split_whitespace().last());
        let Some(id) = own else {
            return Self::default();
        };
        let owner = fs::metadata(process.path("")).map(|process| process.uid());
        let path = process.path(&format!("root/tmp/perf-{id}.map"));
        Self::read(&path, owner.unwrap_or_default()).unwrap_or_default()
    }

    /// Reads a file that belongs to `owner` or to root.
    fn read(path: &str, owner: u32) -> Option<Self> {
        let file = open_plain(path, LARGEST_PERF_MAP).ok()?;
        let writer = file.metadata().ok()?.uid();
        if writer != 0 && writer != owner {
            return None;
        }
        let mut text = Vec::new();
        // It may have grown.
        file.take(LARGEST_PERF_MAP).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let mut functions = Vec::new();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            if let (Some(start), Some(size)) = (number(), number())
                && let Some(name) = words.next()
            {
                functions.push((start, size, name.to_owned()));
            }
        }
        // Code may be made anew at an address, so the last line on one counts.
        functions.sort_by_key(|(start, ..)| *start);
        Some(Self { functions })
    }

    fn name(&self, address: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (address - start < *size).then_some(name.as_str())
    }
}

/// Names of a process's functions.
pub(crate) struct OtherNames {
    process: Process,
    symbolizer: Symbolizer,
    code: Vec<Code>,
    /// Names of code that was made in memory, once they were asked for.
    made: Option<PerfMap>,
    /// Path of the program.
    program: String,
    /// Name of the process.
    name: String,
}

impl OtherNames {
    /// Reads the map of the process's memory, and opens the files in it.
    pub(crate) fn new(target: &Target) -> Self {
        let process = target.process;
        let program = std::fs::read_link(process.path("exe")).unwrap_or_default();
        let program = program.to_string_lossy().into_owned();
        let mut code = Vec::new();
        for part in maps::read(process).lines().filter_map(Part::parse) {
            if part.permissions.contains('x') {
                // If the program's file was replaced since it began, the link still opens the old one.
                let path = match part.name {
                    name if name == program => process.path("exe"),
                    name => process.path("root") + name,
                };
                let is_file = part.name.starts_with('/');
                let file = is_file.then(|| ProgramFile::open(&path).ok()).flatten();
                code.push(Code::new(&part, file));
            }
        }
        Self {
            process,
            symbolizer: Symbolizer::new(),
            code,
            made: None,
            program,
            name: target.name.clone(),
        }
    }

    fn code_at(&self, address: u64) -> Option<&Code> {
        let mut code = self.code.iter();
        code.find(|code| (code.start..code.end).contains(&address))
    }
}

impl Names for OtherNames {
    fn functions(&mut self, address: usize) -> Vec<NamedFrame> {
        let address = address as u64;
        let mut all = self.code.iter_mut();
        let Some(code) = all.find(|code| (code.start..code.end).contains(&address)) else {
            return Vec::new();
        };
        let (source, input) = if code.name.starts_with('/') {
            let offset = address - code.start + code.offset;
            let Some(source) = code.source() else {
                return Vec::new();
            };
            (Source::Elf(source), Input::FileOffset(offset))
        } else if code.name == "[vdso]" {
            // The kernel's own part, which it has in each process.
            let mut process = BySystem::new(self.process.pid().into());
            process.map_files = false;
            process.perf_map = false;
            (Source::Process(process), Input::AbsAddr(address))
        } else {
            let made = self.made.get_or_insert_with(|| PerfMap::of(self.process));
            let name = made.name(address);
            return name.map(|name| frame(name, None)).into_iter().collect();
        };
        if let Some(frames) = symbolized(&self.symbolizer, &source, input) {
            return frames;
        }
        // The file is damaged. What the symbolizer knows of it may be damaged now, too.
        self.symbolizer = Symbolizer::new();
        (code.file, code.source) = (None, None);
        Vec::new()
    }

    fn nameless(&self, address: usize) -> String {
        let address = address as u64;
        match self.code_at(address) {
            Some(code) if !code.name.is_empty() => {
                format!(
                    "[{}+{:#x}]",
                    file_name(&code.name),
                    address - code.start + code.offset
                )
            }
            _ => format!("[{address:#x}]"),
        }
    }

    fn note(&self, known: &HashMap<usize, Vec<NamedFrame>>) -> Option<String> {
        let (mut all, mut without_names, mut without_lines) = (0, 0, 0);
        let mut is_readable = true;
        for (address, frames) in known {
            match self.code_at(*address as u64) {
                Some(code) if code.name == self.program => is_readable &= code.file.is_some(),
                _ => continue,
            }
            all += 1;
            without_names += usize::from(frames.is_empty());
            without_lines += usize::from(frames.iter().all(|frame| frame.line == 0));
        }
        // A few are always without: the standard library's, and what starts the program.
        let mut program = file_name(&self.program);
        // The system keeps the beginning of a process's name.
        if !program.starts_with(&self.name) {
            program = format!("{program}, the program of {},", self.name);
        }
        if !is_readable {
            return Some(format!(
                "no debug information: the file of {program} cannot be read or is damaged, so its functions have no names \
                 here."
            ));
        }
        if without_names * 2 > all {
            return Some(format!(
                "no debug information: {program} is stripped, so its functions have no names here. A Rust program keeps \
                 them with debug = \"limited\" and strip = \"none\" in its Cargo profile."
            ));
        }
        if without_lines * 2 > all {
            return Some(format!(
                "no debug information: {program} has names of functions, and no lines. A Rust program has them with debug = \
                 \"limited\" in its Cargo profile."
            ));
        }
        None
    }
}

/// Returns the functions at an address, or `None` if reading the file panicked, as it can if the file is damaged.
fn symbolized(
    symbolizer: &Symbolizer,
    source: &Source<'_>,
    input: Input<u64>,
) -> Option<Vec<NamedFrame>> {
    // The message would go to the reader's terminal.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let found = panic::catch_unwind(AssertUnwindSafe(|| {
        let Ok(found) = symbolizer.symbolize_single(source, input) else {
            return Vec::new();
        };
        let Some(symbol) = found.into_sym() else {
            return Vec::new();
        };
        let mut frames = vec![frame(&symbol.name, symbol.code_info.as_deref())];
        for inlined in &symbol.inlined {
            frames.push(frame(&inlined.name, inlined.code_info.as_ref()));
        }
        frames.reverse();
        frames
    }));
    panic::set_hook(hook);
    found.ok()
}

/// Returns the frame of a function. The name comes without a hash, as the compiler writes it.
fn frame(name: &str, at: Option<&CodeInfo<'_>>) -> NamedFrame {
    let path = at.map(|at| at.to_path().to_string_lossy().into_owned());
    let path = path.unwrap_or_default();
    NamedFrame {
        function: name.to_owned(),
        is_foreign: !path.is_empty() && is_foreign(&path),
        file: portable(&path),
        line: at.and_then(|at| at.line).unwrap_or_default(),
    }
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    name.trim_end_matches(" (deleted)").to_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_that_is_cut_while_it_is_looked_at_keeps_its_names() {
        let own = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::copy(&own, &program).unwrap();
        let maps = maps::read(Process::this());
        let mut parts = maps.lines().filter_map(Part::parse);
        let is_code =
            |part: &Part<'_>| part.permissions.contains('x') && own == Path::new(part.name);
        let part = parts.find(is_code).unwrap();
        let mut names = OtherNames {
            process: Process::this(),
            symbolizer: Symbolizer::new(),
            code: vec![Code::new(&part, ProgramFile::open(&program).ok())],
            made: None,
            program: part.name.to_owned(),
            name: String::new(),
        };
        let mut name_of = |address: usize| {
            let functions = names.functions(address);
            functions.first().expect("it has a name").function.clone()
        };
        assert!(name_of(is_trusted as *const () as usize).contains("is_trusted"));
        // Libraries and programs that do not run any more can be cut, and so can any file from another machine.
        fs::File::create(&program).unwrap();
        let other = file_name as *const () as usize;
        assert!(name_of(other).contains("file_name"));
    }

    #[test]
    fn names_of_code_that_was_made_in_memory_come_from_plain_files_of_bounded_size_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let own = fs::metadata("/proc/self").unwrap().uid();

        let plain = path("perf-1.map");
        fs::write(
            &plain,
            "7f00 10 earlier\n7f20 8 Shop::rank(int)\nbroken\n7f00 10 now\n",
        )
        .unwrap();
        let names = PerfMap::read(&plain, own).unwrap();
        assert_eq!(names.name(0x7f0f), Some("now"));
        assert_eq!(names.name(0x7f27), Some("Shop::rank(int)"));
        assert_eq!((names.name(0x7f10), names.name(0)), (None, None));

        let pipe = path("perf-2.map");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let large = path("perf-3.map");
        fs::File::create(&large)
            .unwrap()
            .set_len(200 << 30)
            .unwrap();
        let link = path("perf-4.map");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for other in [pipe, large, link, path("none")] {
            assert!(PerfMap::read(&other, own).is_none(), "{other}");
        }
        // A file of another user could say anything.
        if own != 0 {
            assert!(PerfMap::read(&plain, own + 1).is_none());
        }
    }
}
