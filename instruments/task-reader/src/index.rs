//! One pass over a program's debug information, which notes where to find what is needed later.
//!
//! A description of a type is only read when a task needs it. This pass remembers addresses and places, some hundred
//! bytes for each future, and no names but those of types with a method `poll`: the debug information does not say which
//! traits a type has, but it describes every method that was compiled for it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use gimli::{
    AttributeSpecification, AttributeValue, DebugInfoOffset, Dwarf, EndianSlice, EntriesRaw,
    LittleEndian, Operation, Unit, UnitSectionOffset, constants as dw,
};

use crate::Error;
use crate::binary::Binary;

pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Most entries of each kind that are remembered.
const MOST_ENTRIES: usize = 1 << 23;

/// Most units that are kept at hand: each has a table of forms.
const MOST_UNITS: usize = 256;

/// Deepest nesting of namespaces.
const DEEPEST: usize = 64;

/// Place of a description in the section `.debug_info`.
pub(crate) type Place = usize;

/// A namespace, which holds all descriptions from its own place to its end.
struct Namespace {
    start: Place,
    end: Place,
    parent: Option<u32>,
}

/// A thread-local variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadLocal {
    pub(crate) type_at: Place,
    pub(crate) offset: u64,
}

/// Functions in tokio's table for a task that are compiled for the task's type.
pub(crate) const TASK_FUNCTIONS: [&str; 5] = [
    "poll",
    "dealloc",
    "try_read_output",
    "drop_join_handle_slow",
    "shutdown",
];

/// One of these functions, compiled for a future and a scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskFunction {
    /// Number of the function in the list.
    pub(crate) function: usize,
    pub(crate) future: Place,
    pub(crate) scheduler: Place,
}

/// What the pass has found.
#[derive(Default)]
struct Found {
    namespaces: Vec<Namespace>,
    /// Functions of tokio's table for a task by their address: zero for those that the linker has thrown out.
    task_functions: HashMap<u64, Vec<TaskFunction>>,
    /// The same functions by the place of their description, for copies that only refer to it.
    described: HashMap<Place, TaskFunction>,
    /// Copies: address and place of the description.
    copies: Vec<(u64, Place)>,
    /// Tables of trait objects by their address: places of the tables' types.
    vtables: HashMap<u64, Vec<Place>>,
    /// Places of `Pin<&mut Self>` of methods called `poll`.
    polled: Vec<Place>,
    contexts: Vec<ThreadLocal>,
    cells: Vec<Place>,
    trailers: Vec<Place>,
    /// Whether a panic unwinds.
    unwinds: bool,
}

/// Index of the debug information of a program.
pub struct Index<'a> {
    pub(crate) binary: &'a Binary,
    pub(crate) dwarf: Dwarf<Bytes<'a>>,
    /// Where each unit begins.
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
        let mut is_split = false;
        let mut headers = index.dwarf.units();
        // A damaged header ends the list, and a damaged unit only itself.
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = index.dwarf.unit(header) else {
                continue;
            };
            is_split |= unit.dwo_name().is_ok_and(|name| name.is_some());
            let mut pass = Pass {
                dwarf: &index.dwarf,
                unit: &unit,
                found: &mut index.found,
                open: Vec::new(),
            };
            // What was found before the damage counts.
            let _ = pass.run();
            pass.close(0);
            let polled = std::mem::take(&mut index.found.polled);
            index.futures.extend(
                polled
                    .into_iter()
                    .filter_map(|pin| polled_name(&index.dwarf, &unit, pin))
                    .map(hash),
            );
            index
                .units_at
                .extend(header.debug_info_offset().map(|start| start.0));
        }
        index.finish(is_split)?;
        Ok(index)
    }

    fn finish(&mut self, is_split: bool) -> Result<(), Error> {
        for (address, described) in std::mem::take(&mut self.found.copies) {
            if let Some(argument) = self.found.described.get(&described) {
                self.found
                    .task_functions
                    .entry(address)
                    .or_default()
                    .push(*argument);
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
    fn own_name(&self, place: Place) -> Option<&'a [u8]> {
        let unit = self.unit(place)?;
        let entry = unit
            .entry(DebugInfoOffset(place).to_unit_offset(&unit.header)?)
            .ok()?;
        let name = entry.attr_value(dw::DW_AT_name)?;
        Some(self.dwarf.attr_string(&unit, name).ok()?.slice())
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

    /// Returns the types `Cell<T, S>`.
    pub(crate) fn cells(&self) -> &[Place] {
        &self.found.cells
    }

    /// Returns whether the program cleans up after a panic, and does not abort.
    pub(crate) fn unwinds(&self) -> bool {
        self.found.unwinds
    }

    /// Returns the types of what follows a task's future.
    pub(crate) fn trailers(&self) -> &[Place] {
        &self.found.trailers
    }
}

/// A namespace or function that the pass is in.
struct Open {
    depth: isize,
    /// Its number, if it is a namespace.
    number: Option<u32>,
    at: Within,
}

/// How far the namespaces around have led to those that matter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Other,
    Tokio,
    Runtime,
    Task,
    /// `tokio::runtime::task::raw`
    Raw,
    /// `tokio::runtime::task::core`
    Core,
    /// `tokio::runtime::context`
    Contexts,
    /// `tokio::runtime::context::CONTEXT`, or deeper.
    Context,
}

impl Within {
    fn enter(self, name: &[u8], is_outermost: bool) -> Self {
        match (self, name) {
            (Self::Other, b"tokio") if is_outermost => Self::Tokio,
            (Self::Tokio, b"runtime") => Self::Runtime,
            (Self::Runtime, b"task") => Self::Task,
            (Self::Runtime, b"context") => Self::Contexts,
            (Self::Task, b"raw") => Self::Raw,
            (Self::Task, b"core") => Self::Core,
            (Self::Contexts, b"CONTEXT") | (Self::Context, _) => Self::Context,
            _ => Self::Other,
        }
    }
}

/// Attributes of an entry that the pass looks at.
#[derive(Default)]
struct Attributes<'a> {
    name: &'a [u8],
    type_at: Option<Place>,
    low: Option<u64>,
    origin: Option<Place>,
    location: Option<Bytes<'a>>,
}

/// A function of tokio's table, whose arguments are wanted.
struct Function {
    place: Place,
    low: Option<u64>,
    depth: isize,
    number: usize,
    future: Option<Place>,
}

/// The pass over one unit.
struct Pass<'p, 'a> {
    dwarf: &'p Dwarf<Bytes<'a>>,
    unit: &'p Unit<Bytes<'a>>,
    found: &'p mut Found,
    open: Vec<Open>,
}

impl<'a> Pass<'_, 'a> {
    fn run(&mut self) -> gimli::Result<()> {
        let unit = self.unit;
        let mut entries = unit.entries_raw(None)?;
        let mut function: Option<Function> = None;
        let mut polled: Option<isize> = None;
        while !entries.is_empty() {
            let (depth, place) = (entries.next_depth(), self.place(entries.next_offset()));
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            self.close_from(depth, place);
            function = function.filter(|function| depth > function.depth);
            polled = polled.filter(|outer| depth > *outer);
            let wanted = abbreviation.attributes();
            let within = self.open.last().map_or(Within::Other, |open| open.at);
            match abbreviation.tag() {
                dw::DW_TAG_namespace => {
                    let read = self.read(&mut entries, wanted)?;
                    self.found.unwinds |= depth == 1 && read.name == b"panic_unwind";
                    self.open_namespace(depth, place, within.enter(read.name, depth == 1));
                }
                dw::DW_TAG_subprogram => {
                    let read = self.read(&mut entries, wanted)?;
                    let plain = read
                        .name
                        .split(|byte| *byte == b'<')
                        .next()
                        .unwrap_or_default();
                    if plain == b"poll" {
                        polled = Some(depth);
                    }
                    let number = TASK_FUNCTIONS
                        .iter()
                        .position(|name| name.as_bytes() == plain);
                    if let Some(number) = number.filter(|_| within == Within::Raw) {
                        function = Some(Function {
                            place,
                            low: read.low,
                            depth,
                            number,
                            future: None,
                        });
                    }
                    if let (Some(low), Some(origin)) = (read.low, read.origin)
                        && self.found.copies.len() < MOST_ENTRIES
                    {
                        self.found.copies.push((low, origin));
                    }
                }
                dw::DW_TAG_formal_parameter if polled == Some(depth - 1) => {
                    // The first argument alone is `self`.
                    polled = None;
                    let read = self.read(&mut entries, wanted)?;
                    if self.found.polled.len() < MOST_ENTRIES {
                        self.found.polled.extend(read.type_at);
                    }
                }
                dw::DW_TAG_template_type_parameter => {
                    let of_function = function
                        .as_mut()
                        .filter(|function| function.depth == depth - 1);
                    match of_function {
                        Some(function) => {
                            let read = self.read(&mut entries, wanted)?;
                            self.argument(function, &read);
                        }
                        None => entries.skip_attributes(wanted)?,
                    }
                }
                dw::DW_TAG_variable
                    if function.is_none() && (depth == 1 || within == Within::Context) =>
                {
                    let read = self.read(&mut entries, wanted)?;
                    self.variable(&read, within)?;
                }
                dw::DW_TAG_structure_type if within == Within::Core => {
                    let read = self.read(&mut entries, wanted)?;
                    if read.name.starts_with(b"Cell<") {
                        self.found.cells.push(place);
                    } else if read.name == b"Trailer" {
                        self.found.trailers.push(place);
                    }
                    // Nothing within it is a namespace's own.
                    self.open.push(Open {
                        depth,
                        number: None,
                        at: Within::Other,
                    });
                }
                dw::DW_TAG_structure_type | dw::DW_TAG_union_type | dw::DW_TAG_enumeration_type => {
                    entries.skip_attributes(wanted)?;
                    if within != Within::Other {
                        self.open.push(Open {
                            depth,
                            number: None,
                            at: Within::Other,
                        });
                    }
                }
                _ => entries.skip_attributes(wanted)?,
            }
        }
        Ok(())
    }

    /// Notes an argument of a function of tokio's table: the future first, and then the scheduler.
    fn argument(&mut self, function: &mut Function, read: &Attributes<'a>) {
        match (read.name, read.type_at, function.future) {
            (b"T", future, _) => function.future = future,
            (b"S", Some(scheduler), Some(future)) => {
                let described = TaskFunction {
                    function: function.number,
                    future,
                    scheduler,
                };
                self.found.described.insert(function.place, described);
                if let Some(low) = function.low {
                    self.found
                        .task_functions
                        .entry(low)
                        .or_default()
                        .push(described);
                }
            }
            _ => {}
        }
    }

    fn variable(&mut self, read: &Attributes<'a>, within: Within) -> gimli::Result<()> {
        let (Some(location), Some(type_at)) = (read.location, read.type_at) else {
            return Ok(());
        };
        if within == Within::Context {
            let mut operations = gimli::Expression(location).operations(self.unit.encoding());
            if let Some(Operation::UnsignedConstant { value }) = operations.next()?
                && let Some(Operation::TLS) = operations.next()?
            {
                self.found.contexts.push(ThreadLocal {
                    type_at,
                    offset: value,
                });
            }
            return Ok(());
        }
        if read.name.ends_with(b"::{vtable}")
            && let Some(address) = self.address(location)?
        {
            self.found.vtables.entry(address).or_default().push(type_at);
        }
        Ok(())
    }

    /// Returns the address of a variable.
    fn address(&self, location: Bytes<'a>) -> gimli::Result<Option<u64>> {
        let mut operations = gimli::Expression(location).operations(self.unit.encoding());
        Ok(match operations.next()? {
            Some(Operation::Address { address }) => Some(address),
            Some(Operation::AddressIndex { index }) => Some(self.dwarf.address(self.unit, index)?),
            _ => None,
        })
    }

    fn read(
        &self,
        entries: &mut EntriesRaw<'_, Bytes<'a>>,
        wanted: &[AttributeSpecification],
    ) -> gimli::Result<Attributes<'a>> {
        let mut read = Attributes::default();
        for specification in wanted {
            let attribute = entries.read_attribute(*specification)?;
            match attribute.name() {
                dw::DW_AT_name => {
                    read.name = self
                        .dwarf
                        .attr_string(self.unit, attribute.value())?
                        .slice();
                }
                dw::DW_AT_type => read.type_at = self.reference(&attribute.value()),
                dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                    read.origin = self.reference(&attribute.value());
                }
                dw::DW_AT_low_pc => {
                    read.low = self.dwarf.attr_address(self.unit, attribute.value())?
                }
                dw::DW_AT_location => {
                    read.location = attribute.exprloc_value().map(|expression| expression.0)
                }
                _ => {}
            }
        }
        Ok(read)
    }

    fn reference(&self, value: &AttributeValue<Bytes<'a>>) -> Option<Place> {
        reference(self.unit, value)
    }

    fn place(&self, offset: gimli::UnitOffset) -> Place {
        let UnitSectionOffset(place) = offset.to_unit_section_offset(&self.unit.header);
        place
    }

    fn open_namespace(&mut self, depth: isize, start: Place, at: Within) {
        let mut around = self.open.iter().rev();
        let parent = around.find_map(|open| open.number);
        let number = u32::try_from(self.found.namespaces.len()).ok();
        if self.found.namespaces.len() < MOST_ENTRIES {
            self.found.namespaces.push(Namespace {
                start,
                end: Place::MAX,
                parent,
            });
            self.open.push(Open { depth, number, at });
        }
    }

    /// Leaves all namespaces that end before an entry of this depth at this place.
    fn close_from(&mut self, depth: isize, place: Place) {
        while let Some(open) = self.open.pop_if(|open| open.depth >= depth) {
            self.end(&open, place);
        }
    }

    /// Leaves all namespaces at the end of the unit.
    fn close(&mut self, depth: isize) {
        let end = self
            .unit
            .header
            .debug_info_offset()
            .map_or(0, |start| start.0)
            + self.unit.header.length_including_self();
        self.close_from(depth, end);
    }

    fn end(&mut self, open: &Open, place: Place) {
        let number = open.number.and_then(|number| usize::try_from(number).ok());
        if let Some(space) = number.and_then(|number| self.found.namespaces.get_mut(number)) {
            space.end = place;
        }
    }
}

/// Returns the place that an attribute refers to.
pub(crate) fn reference<'a>(
    unit: &Unit<Bytes<'a>>,
    value: &AttributeValue<Bytes<'a>>,
) -> Option<Place> {
    match value {
        AttributeValue::UnitRef(offset) => {
            let UnitSectionOffset(place) = offset.to_unit_section_offset(&unit.header);
            Some(place)
        }
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
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

fn hash(name: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}
