//! Index of a program's debug information, after one pass: where types, functions and tables are described.
//!
//! The debug information does not say which traits a type has, but it describes every method that was compiled for it. So
//! a future is a type with a method `poll`, and these types' names are the only ones that are remembered.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use gimli::{DebugInfoOffset, Dwarf, EndianSlice, LittleEndian, Unit, constants as dw};

use crate::Error;
use crate::binary::Binary;
use crate::pass::{Bytes, Drops, Found, Pass, Place, TaskFunction, ThreadLocal, hash, reference};

/// Most units that are kept at hand: each has a table of forms.
const MOST_UNITS: usize = 256;

/// Bytes of debug information after which the system gets the memory of what was read.
const AT_ONCE: usize = 16 << 20;

/// Deepest nesting of namespaces.
const DEEPEST: usize = 64;

/// Index of the debug information of a program.
pub struct Index<'a> {
    pub(crate) binary: &'a Binary,
    pub(crate) dwarf: Dwarf<Bytes<'a>>,
    /// Beginning of each unit.
    units_at: Vec<Place>,
    found: Found,
    futures: HashSet<u64>,
    units: RefCell<HashMap<Place, Rc<Unit<Bytes<'a>>>>>,
}

impl std::fmt::Debug for Index<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("binary", &self.binary.path())
            .finish_non_exhaustive()
    }
}

impl<'a> Index<'a> {
    /// Indexes the debug information of a program.
    ///
    /// # Errors
    ///
    /// Fails if the debug information has no types, or does not describe tokio's runtime.
    pub fn new(binary: &'a Binary) -> Result<Self, Error> {
        let section = |id: gimli::SectionId| {
            Ok::<_, gimli::Error>(EndianSlice::new(binary.section(id.name()), LittleEndian))
        };
        let dwarf = Dwarf::load(section).map_err(|_| binary.no_types(""))?;
        let mut index = Self {
            binary,
            dwarf,
            units_at: Vec::new(),
            found: Found::default(),
            futures: HashSet::new(),
            units: RefCell::default(),
        };
        let (mut is_split, mut kept_from) = (false, 0);
        let mut headers = index.dwarf.units();
        // A damaged header ends the list, and a damaged unit only itself.
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = index.dwarf.unit(header) else {
                continue;
            };
            is_split |= unit.dwo_name().is_ok_and(|name| name.is_some());
            Pass::run(&index.dwarf, &unit, &mut index.found);
            let polled = std::mem::take(&mut index.found.polled);
            index.futures.extend(
                polled
                    .into_iter()
                    .filter_map(|pin| polled_name(&index.dwarf, &unit, pin))
                    .map(hash),
            );
            if let Some(start) = header.debug_info_offset() {
                index.units_at.push(start.0);
                if start.0.saturating_sub(kept_from) >= AT_ONCE {
                    binary.give_back();
                    kept_from = start.0;
                }
            }
        }
        binary.give_back();
        match (index.finish(is_split), binary.libraries.first()) {
            (Ok(()), _) => Ok(index),
            (Err(_), Some(library)) => Err(Error::InLibrary(library.clone())),
            (Err(error), None) => Err(error),
        }
    }

    fn finish(&mut self, is_split: bool) -> Result<(), Error> {
        let described_drops = std::mem::take(&mut self.found.described_drops);
        for (code, described) in std::mem::take(&mut self.found.copies) {
            if let Some(argument) = self.found.described.get(&described) {
                self.found
                    .task_functions
                    .entry(code.low)
                    .or_default()
                    .push(*argument);
            }
            if let Some(dropping) = described_drops.get(&described) {
                self.found.drops.add(code, *dropping);
            }
        }
        if is_split {
            return Err(self
                .binary
                .no_types(" (it is split off: set `split-debuginfo = \"off\"`)"));
        }
        if self.found.cells.is_empty() {
            let described = self
                .found
                .namespaces
                .iter()
                .any(|space| space.parent.is_none());
            let has_tasks = !self.found.task_functions.is_empty();
            return Err(
                if described && !has_tasks && !self.found.contexts.is_empty() {
                    Error::NoRuntime("any task")
                } else {
                    self.binary
                        .no_types(" (`debug = 1` or \"limited\" has lines and no types)")
                },
            );
        }
        if self.found.contexts.is_empty() {
            return Err(Error::NoRuntime("tokio::runtime::context::CONTEXT"));
        }
        Ok(())
    }

    /// Returns the unit that describes what lies at a place.
    pub(crate) fn unit(&self, place: Place) -> Option<Rc<Unit<Bytes<'a>>>> {
        let start = self.unit_start(place)?;
        if let Some(unit) = self.units.borrow().get(&start) {
            return Some(unit.clone());
        }
        let header = self.dwarf.unit_header(DebugInfoOffset(start)).ok()?;
        let unit = Rc::new(self.dwarf.unit(header).ok()?);
        let mut units = self.units.borrow_mut();
        if units.len() >= MOST_UNITS {
            units.clear();
        }
        units.insert(start, unit.clone());
        Some(unit)
    }

    /// Returns the place at which the unit that holds `place` begins.
    pub(crate) fn unit_start(&self, place: Place) -> Option<Place> {
        let after = self.units_at.partition_point(|start| *start <= place);
        self.units_at.get(after.checked_sub(1)?).copied()
    }

    /// Returns the path of the namespace around a place, such as `tokio::sync::mutex`.
    pub(crate) fn namespace(&self, place: Place) -> Option<String> {
        let spaces = &self.found.namespaces;
        let after = spaces.partition_point(|space| space.start < place);
        let mut at = u32::try_from(after.checked_sub(1)?).ok();
        let mut names = Vec::new();
        while let Some(number) = at {
            let space = spaces.get(usize::try_from(number).ok()?)?;
            if place < space.end {
                let name = self.own_name(space.start)?;
                names.push(crate::names::printable(name));
            }
            at = space.parent;
            if names.len() == DEEPEST {
                break;
            }
        }
        names.reverse();
        (!names.is_empty()).then(|| names.join("::"))
    }

    /// Returns the name that the entry at a place has.
    pub(crate) fn own_name(&self, place: Place) -> Option<&'a [u8]> {
        let unit = self.unit(place)?;
        let entry = unit
            .entry(DebugInfoOffset(place).to_unit_offset(&unit.header)?)
            .ok()?;
        let name = entry.attr_value(dw::DW_AT_name)?;
        Some(self.dwarf.attr_string(&unit, name).ok()?.slice())
    }

    /// Returns the place to which an attribute of the entry at a place refers.
    pub(crate) fn reference(&self, place: Place, attribute: gimli::DwAt) -> Option<Place> {
        let unit = self.unit(place)?;
        let entry = unit
            .entry(DebugInfoOffset(place).to_unit_offset(&unit.header)?)
            .ok()?;
        reference(&unit, &entry.attr_value(attribute)?)
    }

    /// Returns the place of what the entry at a place is a copy of, or declares.
    pub(crate) fn origin(&self, place: Place) -> Option<Place> {
        let of = self.reference(place, dw::DW_AT_abstract_origin);
        of.or_else(|| self.reference(place, dw::DW_AT_specification))
    }

    /// Returns whether a type of this name has a method `poll`.
    pub(crate) fn is_polled(&self, name: &str) -> bool {
        self.futures.contains(&hash(name.as_bytes()))
    }

    /// Returns the functions of tasks at an address: several, if the linker has folded them.
    pub(crate) fn task_functions(&self, address: u64) -> &[TaskFunction] {
        self.found
            .task_functions
            .get(&address)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns all functions of tasks with their addresses.
    pub(crate) fn all_task_functions(&self) -> impl Iterator<Item = (u64, &TaskFunction)> {
        let functions = self.found.task_functions.iter();
        functions
            .flat_map(|(address, functions)| functions.iter().map(|function| (*address, function)))
    }

    /// Returns the types of the tables for trait objects at an address.
    pub(crate) fn vtables(&self, address: u64) -> &[Place] {
        self.found.vtables.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Returns tokio's thread-local contexts.
    pub(crate) fn contexts(&self) -> &[ThreadLocal] {
        &self.found.contexts
    }

    /// Returns the thread-local variables with the `LocalSet` that a thread runs.
    pub(crate) fn local_sets(&self) -> &[ThreadLocal] {
        &self.found.local_sets
    }

    /// Returns the types `Cell<T, S>`.
    pub(crate) fn cells(&self) -> &[Place] {
        &self.found.cells
    }

    /// Returns the functions behind `async fn`s and blocks.
    pub(crate) fn bodies(&self) -> &[Place] {
        &self.found.bodies
    }

    /// Returns the functions that drop something.
    pub(crate) fn drops(&self) -> &Drops {
        &self.found.drops
    }

    /// Returns the types of what follows a task's future.
    pub(crate) fn trailers(&self) -> &[Place] {
        &self.found.trailers
    }
}

/// Returns the name of `Self` of a method `poll`, whose first argument is of the type at `pin`.
fn polled_name<'a>(
    dwarf: &Dwarf<Bytes<'a>>,
    unit: &Unit<Bytes<'a>>,
    pin: Place,
) -> Option<&'a [u8]> {
    let entry = unit
        .entry(DebugInfoOffset(pin).to_unit_offset(&unit.header)?)
        .ok()?;
    let name = dwarf
        .attr_string(unit, entry.attr_value(dw::DW_AT_name)?)
        .ok()?;
    name.slice().strip_prefix(b"Pin<&mut ")?.strip_suffix(b">")
}
