//! Unwinder that finds callers from registers and a copied stack, with framehop and the tables in the program's files.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
    UnwindRegsNative, Unwinder as _, UnwinderNative,
};
use object::read::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};

use super::program::ProgramFile;
use crate::Process;
use crate::maps::{self, Part};

/// Most callers of one stack; further ones are left out.
const DEEPEST: usize = 512;

/// Size of the largest table of callers that is read, in bytes. Browsers have tables of some 30 MiB.
const LARGEST_TABLE: u64 = 128 << 20;

/// Room on a stack, in bytes, below which a signal may not fit. A signal takes up to 12 KiB, by the registers that the CPU
/// has, and the thread may go deeper before it comes.
const ROOM: u64 = 64 << 10;

/// Most bytes of the alternate stacks that Rust's standard library gives its threads. Between parts that nobody may
/// access, they look like stacks.
const ALTERNATE_STACK: u64 = 12 << 10;

/// A function call on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Address in the function: of a caller, the byte before its return address.
    pub address: u64,
    /// Stack pointer while the function runs, or while what it called does.
    pub stack: u64,
    /// Frame pointer at the same moment.
    pub frame: u64,
}

/// Finder of callers, by the tables of the files that it has read.
pub struct Unwinder {
    process: Process,
    native: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// Addresses at which files begin that were read, or that could not be read.
    known: HashSet<u64>,
    /// Parts of memory that may hold stacks, in order.
    pub(crate) stacks: Vec<(u64, u64)>,
    /// Those of them that begin where nobody may access memory, as the stacks of threads do.
    guarded: Vec<(u64, u64)>,
}

impl Unwinder {
    /// Makes an unwinder that knows no file of `process` yet.
    pub fn new(process: Process) -> Self {
        Self {
            process,
            native: UnwinderNative::new(),
            cache: CacheNative::new(),
            known: HashSet::new(),
            stacks: Vec::new(),
            guarded: Vec::new(),
        }
    }

    /// Reads the memory map again, for new threads and libraries.
    pub fn look(&mut self) {
        let maps = maps::read(self.process);
        self.stacks.clear();
        self.guarded.clear();
        let mut base = (0, "");
        let mut end_of_guard = 0;
        for part in maps.lines().filter_map(Part::parse) {
            if part.permissions.starts_with("rw") {
                self.stacks.push((part.start, part.end));
                if part.start == end_of_guard && !part.name.starts_with('/') {
                    self.guarded.push((part.start, part.end));
                }
            }
            if part.permissions.starts_with("---") {
                end_of_guard = part.end;
            }
            // The first part of a file holds its header.
            if part.offset == 0 && part.name != base.1 {
                base = (part.start, part.name);
            }
            let is_code = part.permissions.contains('x') && !part.name.is_empty();
            let is_own = is_code && part.name == base.1;
            if is_own
                && self.known.insert(base.0)
                && let Some(module) = self.module(base.0, &part)
            {
                self.native.add_module(module);
            }
        }
    }

    /// Returns whether there is a part of memory that looks like a small stack.
    pub fn has_small_stacks(&self) -> bool {
        let mut guarded = self.guarded.iter();
        guarded.any(|(start, end)| (ALTERNATE_STACK + 1..ROOM).contains(&(end - start)))
    }

    /// Returns whether a thread with this stack pointer has too little room on its stack for a signal.
    pub fn has_little_room(&self, pointer: u64) -> bool {
        let mut guarded = self.guarded.iter();
        guarded.any(|(start, end)| (*start..*end.min(&(start + ROOM))).contains(&pointer))
    }

    /// Reads the tables of the file whose code is in `part`, and whose header is in memory at `base`.
    fn module(&self, base: u64, part: &Part<'_>) -> Option<Module<Vec<u8>>> {
        if part.name == "[vdso]" {
            let memory = self.memory(part.start, part.end)?;
            return module(&*memory, base, part);
        }
        let program = ProgramFile::open(self.file(part.name)).ok()?;
        module(&ReadCache::new(program.file), base, part)
    }

    /// Returns the path by which a file of the process is opened here; the process may be in a container.
    fn file(&self, name: &str) -> String {
        // If the program's file was replaced since it began, this still opens the old one.
        let own = self.process.path("exe");
        if std::fs::read_link(&own).is_ok_and(|path| path == Path::new(name)) {
            own
        } else if self.process.is_this() {
            name.to_owned()
        } else {
            self.process.path("root") + name
        }
    }

    /// Reads a part of the process's memory from `/proc`.
    fn memory(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end - start).ok()?];
        let memory = File::open(self.process.path("mem")).ok()?;
        memory.read_exact_at(&mut bytes, start).ok()?;
        Some(bytes)
    }

    /// Returns addresses from the innermost outwards. A caller's address is the byte before its return address.
    ///
    /// `registers` are instruction, stack pointer, frame pointer, and on aarch64 the link register; `word` reads the
    /// stack.
    pub fn callers(
        &mut self,
        registers: [u64; 4],
        word: impl Fn(u64) -> Option<u64>,
    ) -> Vec<usize> {
        let calls = self.calls(registers, word).into_iter();
        calls
            .filter_map(|call| usize::try_from(call.address).ok())
            .collect()
    }

    /// Returns the calls of a stack from the innermost outwards, as [`callers`](Self::callers) does.
    pub fn calls(&mut self, registers: [u64; 4], word: impl Fn(u64) -> Option<u64>) -> Vec<Call> {
        let [instruction, stack, frame, _link] = registers;
        #[cfg(target_arch = "x86_64")]
        let mut registers = UnwindRegsNative::new(instruction, stack, frame);
        #[cfg(target_arch = "aarch64")]
        let mut registers = UnwindRegsNative::new(_link, stack, frame);
        let mut read = |address| word(address).ok_or(());
        let mut address = FrameAddress::from_instruction_pointer(instruction);
        let mut calls = Vec::new();
        loop {
            calls.push(Call {
                address: address.address_for_lookup(),
                stack: registers.sp(),
                #[cfg(target_arch = "x86_64")]
                frame: registers.bp(),
                #[cfg(target_arch = "aarch64")]
                frame: registers.fp(),
            });
            let next =
                self.native
                    .unwind_frame(address, &mut registers, &mut self.cache, &mut read);
            // An error ends the stack: nothing beyond can be known.
            let next = next
                .ok()
                .flatten()
                .and_then(FrameAddress::from_return_address);
            match next {
                Some(next) if calls.len() < DEEPEST => address = next,
                _ => return calls,
            }
        }
    }
}

/// Parses a file whose header is in memory at `base`, and its code in `part`.
fn module<'a>(file: impl ReadRef<'a>, base: u64, part: &Part<'_>) -> Option<Module<Vec<u8>>> {
    let file = object::File::parse(file).ok()?;
    let range = |name| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let data = |name| {
        let section = file
            .section_by_name(name)
            .filter(|section| section.size() <= LARGEST_TABLE)?;
        Some(section.data().ok()?.to_vec())
    };
    let sections = ExplicitModuleSectionInfo {
        // The base is zero, unless the program is not position-independent.
        base_svma: file.segments().map(|part| part.address()).min()? & !0xfff,
        text_svma: range(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    };
    let name = part.name.to_owned();
    Some(Module::new(name, base..part.end, base, sections))
}
