//! Functions on the stacks of threads.

use diagnosis::Process;
use diagnosis::threads::{Call, StillThread, Unwinder};
use gimli::{Dwarf, EndianSlice, LittleEndian};

use crate::binary::Binary;
use crate::memory::Memory;
use crate::model::{Frame, Stage};
use crate::names;
use crate::pass::{Bytes, Place};
use crate::types::Line;

/// Bytes of a stack that are read above and below its pointer: the pointer moves between two stops.
const ABOVE: u64 = 64 << 10;
const BELOW: u64 = 8 << 10;

/// Most functions of one stack that are shown.
const MOST_FRAMES: usize = 64;

/// Part of the names of tokio's functions for a task.
const TASK: &str = "tokio::runtime::task::";

/// A function on a stack.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: Option<Line>,
}

/// Finds and names the functions on the stacks of a process.
pub(crate) struct Calls<'a> {
    pub(crate) pid: u32,
    unwinder: Unwinder,
    names: Option<addr2line::Context<Bytes<'a>>>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(binary: &'a Binary, pid: u32) -> Self {
        let section = |id: gimli::SectionId| {
            Ok::<_, gimli::Error>(EndianSlice::new(binary.section(id.name()), LittleEndian))
        };
        Self {
            pid,
            unwinder: Unwinder::new(Process::of(pid)),
            names: Dwarf::load(section)
                .ok()
                .and_then(|dwarf| addr2line::Context::from_dwarf(dwarf).ok()),
        }
    }

    /// Looks for libraries that the process has loaded since.
    pub(crate) fn look(&mut self) {
        self.unwinder.look();
    }

    /// Returns the calls on the stack of a thread, the innermost first, as far as its memory is known.
    pub(crate) fn stack(&mut self, memory: &Memory, thread: &StillThread) -> Vec<Call> {
        let [_, stack, ..] = thread.registers;
        memory.ask(&(stack.saturating_sub(BELOW)..stack.saturating_add(ABOVE)));
        let word = |address: u64| {
            let mut bytes = [0; 8];
            for (offset, byte) in (0..).zip(&mut bytes) {
                *byte = memory.kept_byte(address.checked_add(offset)?)?;
            }
            Some(u64::from_ne_bytes(bytes))
        };
        self.unwinder.calls(thread.registers, word)
    }

    /// Returns the functions within the poll of a task, from the outermost inwards.
    pub(crate) fn of_task(
        &mut self,
        memory: &Memory,
        thread: &StillThread,
        bias: u64,
    ) -> Vec<Frame> {
        let mut functions = Vec::new();
        for call in self.stack(memory, thread) {
            functions.extend(self.functions(call.address.wrapping_sub(bias)));
        }
        let is_poll =
            |function: &Function| function.name.contains(TASK) && function.name.contains("poll");
        let polls = functions.iter().position(is_poll);
        functions.truncate(polls.unwrap_or(functions.len()));
        frames(functions)
    }

    /// Returns the functions at an address of the program as linked, the innermost first.
    pub(crate) fn functions(&self, linked: u64) -> Vec<Function> {
        let mut functions = Vec::new();
        let Some(names) = &self.names else {
            return functions;
        };
        let compiled_in = names
            .find_dwarf_and_unit(linked)
            .skip_all_loads()
            .and_then(|unit| unit.comp_dir)
            .map(|path| names::printable(path.slice()))
            .unwrap_or_default();
        let Ok(mut frames) = names.find_frames(linked).skip_all_loads() else {
            return functions;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.demangle().ok());
            let line = frame.location.and_then(|place| {
                Some(Line {
                    file: names::of_file(&names::printable(place.file?.as_bytes()), &compiled_in),
                    line: u64::from(place.line?),
                })
            });
            if let Some(name) = name {
                let name = names::of_function(&name);
                functions.push(Function { name, line });
            }
        }
        functions
    }

    /// Returns where the unit begins that describes the code at an address of the program as linked.
    pub(crate) fn unit(&self, linked: u64) -> Option<Place> {
        let unit = self.names.as_ref()?.find_dwarf_and_unit(linked);
        Some(unit.skip_all_loads()?.header.debug_info_offset()?.0)
    }
}

/// Turns functions, the innermost first, into frames from the outermost inwards.
pub(crate) fn frames(mut functions: Vec<Function>) -> Vec<Frame> {
    functions.truncate(MOST_FRAMES);
    let mut frames = Vec::new();
    for (depth, function) in functions.into_iter().rev().enumerate() {
        frames.push(Frame {
            depth,
            future: function.name,
            line: function.line,
            begins: None,
            stage: Stage::Called,
        });
    }
    frames
}
