//! Functions on the stack of a thread that polls a task.

use diagnosis::Process;
use diagnosis::threads::{StillThread, Unwinder};
use gimli::{Dwarf, EndianSlice, LittleEndian};

use crate::binary::Binary;
use crate::memory::Memory;
use crate::model::{Frame, Stage};
use crate::names;
use crate::pass::Bytes;
use crate::types::Line;

/// Bytes of a stack that are read above and below its pointer: the pointer moves between two stops.
const ABOVE: u64 = 64 << 10;
const BELOW: u64 = 8 << 10;

/// Most functions of one stack that are shown.
const MOST_FRAMES: usize = 64;

/// Part of the names of tokio's functions for a task.
const TASK: &str = "tokio::runtime::task::";

/// Asks for the stack of a thread.
pub(crate) fn ask(memory: &Memory, thread: &StillThread) {
    let [_, stack, ..] = thread.registers;
    memory.ask(&(stack.saturating_sub(BELOW)..stack.saturating_add(ABOVE)));
}

/// Names functions on the stacks of a process.
pub(crate) struct Calls<'a> {
    unwinder: Unwinder,
    names: Option<addr2line::Context<Bytes<'a>>>,
    bias: u64,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(binary: &'a Binary, pid: u32, bias: u64) -> Self {
        let section = |id: gimli::SectionId| {
            Ok::<_, gimli::Error>(EndianSlice::new(binary.section(id.name()), LittleEndian))
        };
        let mut unwinder = Unwinder::new(Process::of(pid));
        unwinder.look();
        Self {
            unwinder,
            names: Dwarf::load(section)
                .ok()
                .and_then(|dwarf| addr2line::Context::from_dwarf(dwarf).ok()),
            bias,
        }
    }

    /// Returns the functions within the poll of a task, from the outermost inwards.
    pub(crate) fn of_task(&mut self, memory: &Memory, thread: &StillThread) -> Vec<Frame> {
        let word = |address: u64| {
            let mut bytes = [0; 8];
            for (offset, byte) in (0..).zip(&mut bytes) {
                *byte = memory.kept_byte(address.checked_add(offset)?)?;
            }
            Some(u64::from_ne_bytes(bytes))
        };
        let mut functions = Vec::new();
        for address in self.unwinder.callers(thread.registers, word) {
            functions.extend(self.at(address as u64));
        }
        // The innermost come first.
        let is_poll = |name: &str| name.contains(TASK) && name.contains("poll");
        let polls = functions.iter().position(|(name, _)| is_poll(name));
        functions.truncate(polls.unwrap_or(functions.len()));
        functions.reverse();
        let left_out = functions.len().saturating_sub(MOST_FRAMES);
        let mut frames = Vec::new();
        for (depth, (future, line)) in functions.into_iter().skip(left_out).enumerate() {
            frames.push(Frame {
                depth,
                future,
                line,
                begins: None,
                stage: Stage::Called,
            });
        }
        frames
    }

    /// Returns the functions at an address, the innermost first.
    fn at(&self, address: u64) -> Vec<(String, Option<Line>)> {
        let linked = address.wrapping_sub(self.bias);
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
                functions.push((names::of_function(&name), line));
            }
        }
        functions
    }
}
