//! Names of another program's functions, by blazesym, from the files that the process has in memory.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use await_profile::{is_foreign, portable};
use blazesym::symbolize::source::{Elf, Process as BySystem, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolizer};
use diagnosis::Process;
use diagnosis::maps::{self, Part};
use diagnosis::threads::{NamedFrame, Names};

use super::target::Target;

/// Part of a file that is in memory and may be executed.
struct Code {
    start: u64,
    end: u64,
    offset: u64,
    /// Path in the process's own file system; empty for code that was made in memory.
    name: String,
    /// Path by which it is opened here, as long as the process is there.
    path: String,
    /// The file, held open because nothing leads to it once the process has ended.
    file: Option<File>,
}

impl Code {
    /// Returns a path that leads to the file, even if the process has ended.
    fn readable_path(&self) -> String {
        match &self.file {
            Some(file) if !Path::new(&self.path).exists() => {
                format!("/proc/self/fd/{}", file.as_raw_fd())
            }
            _ => self.path.clone(),
        }
    }
}

/// Names of a process's functions.
pub(crate) struct OtherNames {
    process: Process,
    symbolizer: Symbolizer,
    code: Vec<Code>,
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
                code.push(Code {
                    start: part.start,
                    end: part.end,
                    offset: part.offset,
                    name: part.name.to_owned(),
                    file: is_file.then(|| File::open(&path).ok()).flatten(),
                    path,
                });
            }
        }
        Self {
            process,
            symbolizer: Symbolizer::new(),
            code,
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
        let Some(code) = self.code_at(address) else {
            return Vec::new();
        };
        let found = if code.name.starts_with('/') {
            let offset = address - code.start + code.offset;
            let file = Source::Elf(Elf::new(code.readable_path()));
            self.symbolizer
                .symbolize_single(&file, Input::FileOffset(offset))
        } else {
            // The kernel's own part, and code that was made in memory and has its names in a file of perf's.
            let mut process = BySystem::new(self.process.pid().into());
            process.map_files = false;
            let process = Source::Process(process);
            self.symbolizer
                .symbolize_single(&process, Input::AbsAddr(address))
        };
        let Ok(found) = found else {
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
        for (address, frames) in known {
            match self.code_at(*address as u64) {
                Some(code) if code.name == self.program => {}
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
