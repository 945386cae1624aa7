//! The pass over the debug information of one unit, which notes where to find what is needed later.
//!
//! It remembers addresses and places, and no names: a type is only read when a task needs it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use gimli::{
    AttributeSpecification, AttributeValue, Dwarf, EndianSlice, EntriesRaw, LittleEndian,
    Operation, Unit, UnitSectionOffset, constants as dw,
};

pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Most entries of each kind that are remembered.
const MOST_ENTRIES: usize = 1 << 23;

/// Place of a description in the section `.debug_info`.
pub(crate) type Place = usize;

/// A namespace, which holds all descriptions from its own place to its end.
pub(crate) struct Namespace {
    pub(crate) start: Place,
    pub(crate) end: Place,
    pub(crate) parent: Option<u32>,
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

/// Machine code of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    pub(crate) low: u64,
    /// Address behind it.
    pub(crate) end: u64,
}

/// What a function drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropping {
    /// A value of the type whose name has this hash, with all that it keeps.
    Glue(u64),
    /// It is a method `drop`, or a part of one.
    Other,
    /// Nothing: it never returns.
    Endless,
}

/// Functions that drop something.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    /// Their ends by their addresses.
    pub(crate) ends: HashMap<u64, u64>,
    /// Addresses of the compiler's functions that drop a value with all that it keeps, by the hash of its type's name.
    pub(crate) glue: HashMap<u64, u64>,
    /// Functions that never return.
    pub(crate) endless: HashSet<u64>,
}

impl Drops {
    pub(crate) fn add(&mut self, code: Code, dropping: Dropping) {
        // Zero is the address of what the linker has thrown out.
        if code.low == 0 || self.ends.len() >= MOST_ENTRIES {
            return;
        }
        if dropping == Dropping::Endless {
            self.endless.insert(code.low);
            return;
        }
        self.ends.insert(code.low, code.end);
        if let Dropping::Glue(name) = dropping {
            self.glue.insert(name, code.low);
        }
    }
}

/// Findings of the pass.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) namespaces: Vec<Namespace>,
    /// Functions of tokio's table for a task by their address: zero for those that the linker has thrown out.
    pub(crate) task_functions: HashMap<u64, Vec<TaskFunction>>,
    /// The same functions by the place of their description, for copies that only refer to it.
    pub(crate) described: HashMap<Place, TaskFunction>,
    /// Copies, with the place of the description.
    pub(crate) copies: Vec<(Code, Place)>,
    /// Tables of trait objects by their address: places of the tables' types.
    pub(crate) vtables: HashMap<u64, Vec<Place>>,
    /// Places of `Pin<&mut Self>` of methods called `poll`.
    pub(crate) polled: Vec<Place>,
    pub(crate) contexts: Vec<ThreadLocal>,
    /// Thread-local variables with the `LocalSet` that the thread runs.
    pub(crate) local_sets: Vec<ThreadLocal>,
    pub(crate) cells: Vec<Place>,
    pub(crate) trailers: Vec<Place>,
    /// Functions behind `async fn`s and blocks.
    pub(crate) bodies: Vec<Place>,
    pub(crate) drops: Drops,
    /// Functions that drop something, by the place of their description.
    pub(crate) described_drops: HashMap<Place, Dropping>,
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
    /// `tokio::task`
    Tasks,
    /// `tokio::task::local`
    Local,
    /// `tokio::task::local::CURRENT`, or deeper.
    LocalSet,
}

impl Within {
    fn enter(self, name: &[u8], is_outermost: bool) -> Self {
        match (self, name) {
            (Self::Other, b"tokio") if is_outermost => Self::Tokio,
            (Self::Tokio, b"runtime") => Self::Runtime,
            (Self::Tokio, b"task") => Self::Tasks,
            (Self::Tasks, b"local") => Self::Local,
            (Self::Local, b"CURRENT") | (Self::LocalSet, _) => Self::LocalSet,
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
    end: Option<End>,
    origin: Option<Place>,
    location: Option<Bytes<'a>>,
    is_endless: bool,
}

/// End of a function.
#[derive(Clone, Copy)]
enum End {
    At(u64),
    After(u64),
}

impl Attributes<'_> {
    /// Returns the machine code, if there is any.
    fn code(&self) -> Option<Code> {
        let low = self.low?;
        let end = match self.end? {
            End::At(end) => end,
            End::After(length) => low.checked_add(length)?,
        };
        Some(Code { low, end })
    }
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
pub(crate) struct Pass<'p, 'a> {
    dwarf: &'p Dwarf<Bytes<'a>>,
    unit: &'p Unit<Bytes<'a>>,
    found: &'p mut Found,
    open: Vec<Open>,
}

impl<'p, 'a> Pass<'p, 'a> {
    /// Adds what a unit describes to what was found.
    pub(crate) fn run(
        dwarf: &'p Dwarf<Bytes<'a>>,
        unit: &'p Unit<Bytes<'a>>,
        found: &'p mut Found,
    ) {
        let mut pass = Self {
            dwarf,
            unit,
            found,
            open: Vec::new(),
        };
        // What was found before the damage counts.
        let _ = pass.entries();
        pass.close();
    }

    /// Reads the unit, up to its end or to where it is damaged.
    fn entries(&mut self) -> gimli::Result<()> {
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
                    self.open_namespace(depth, place, within.enter(read.name, depth == 1));
                }
                dw::DW_TAG_subprogram => {
                    let read = self.read(&mut entries, wanted)?;
                    if plain_name(&read) == b"poll" {
                        polled = Some(depth);
                    }
                    let number = self.function(&read, place, within);
                    if let Some(number) = number {
                        let low = read.low;
                        function = Some(Function {
                            place,
                            low,
                            depth,
                            number,
                            future: None,
                        });
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
                    if function.is_none()
                        && (depth == 1 || matches!(within, Within::Context | Within::LocalSet)) =>
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

    /// Notes a function, and returns its number if it is one of tokio's table.
    fn function(&mut self, read: &Attributes<'a>, place: Place, within: Within) -> Option<usize> {
        if read.name.starts_with(b"{async") {
            self.found.bodies.push(place);
        }
        if let (Some(code), Some(origin)) = (read.code(), read.origin)
            && self.found.copies.len() < MOST_ENTRIES
        {
            self.found.copies.push((code, origin));
        }
        if let Some(dropping) = dropping(read, within) {
            match read.code() {
                Some(code) => self.found.drops.add(code, dropping),
                None if self.found.described_drops.len() < MOST_ENTRIES => {
                    self.found.described_drops.insert(place, dropping);
                }
                None => {}
            }
        }
        let name = plain_name(read);
        let number = TASK_FUNCTIONS
            .iter()
            .position(|function| function.as_bytes() == name);
        number.filter(|_| within == Within::Raw)
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
        let thread_locals = match within {
            Within::Context => Some(&mut self.found.contexts),
            Within::LocalSet => Some(&mut self.found.local_sets),
            _ => None,
        };
        if let Some(thread_locals) = thread_locals {
            let mut operations = gimli::Expression(location).operations(self.unit.encoding());
            if let Some(Operation::UnsignedConstant { value }) = operations.next()?
                && let Some(Operation::TLS) = operations.next()?
            {
                thread_locals.push(ThreadLocal {
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
                    read.low = self.dwarf.attr_address(self.unit, attribute.value())?;
                }
                dw::DW_AT_high_pc => {
                    read.end = match attribute.value() {
                        AttributeValue::Udata(length) => Some(End::After(length)),
                        value => match attribute.udata_value() {
                            Some(length) => Some(End::After(length)),
                            None => self.dwarf.attr_address(self.unit, value)?.map(End::At),
                        },
                    };
                }
                dw::DW_AT_noreturn => {
                    read.is_endless = matches!(attribute.value(), AttributeValue::Flag(true));
                }
                dw::DW_AT_location => {
                    read.location = attribute.exprloc_value().map(|expression| expression.0);
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
    fn close(&mut self) {
        let end = self
            .unit
            .header
            .debug_info_offset()
            .map_or(0, |start| start.0)
            + self.unit.header.length_including_self();
        self.close_from(0, end);
    }

    fn end(&mut self, open: &Open, place: Place) {
        let number = open.number.and_then(|number| usize::try_from(number).ok());
        if let Some(space) = number.and_then(|number| self.found.namespaces.get_mut(number)) {
            space.end = place;
        }
    }
}

/// Returns what a function drops, or that it never returns.
fn dropping(read: &Attributes<'_>, within: Within) -> Option<Dropping> {
    if read.is_endless {
        return Some(Dropping::Endless);
    }
    // Its name of before and since Rust 1.97.
    let of = read.name.strip_prefix(b"drop_in_place<");
    if let Some(of) = of.or_else(|| read.name.strip_prefix(b"drop_glue<")) {
        return of.strip_suffix(b">").map(|of| Dropping::Glue(hash(of)));
    }
    let name = plain_name(read);
    // A task's own function drops the task with its future.
    let is_drop =
        matches!(name, b"drop" | b"drop_slow") || within == Within::Raw && name == b"dealloc";
    is_drop.then_some(Dropping::Other)
}

/// Returns a number that stands for a name.
pub(crate) fn hash(name: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}

/// Returns a function's name without the arguments of its types.
fn plain_name<'a>(read: &Attributes<'a>) -> &'a [u8] {
    read.name
        .split(|byte| *byte == b'<')
        .next()
        .unwrap_or_default()
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
