//! Types, read from the debug information when a task first needs one, and kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, EntriesTreeNode, Unit,
    constants as dw,
};
use serde::Serialize;

use crate::index::Index;
use crate::names;
use crate::pass::{Bytes, Place, reference};

/// Most members or variants of a type that are read.
const MOST_MEMBERS: usize = 4096;

/// Most types that are kept.
const MOST_TYPES: usize = 1 << 20;

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Line {
    /// File, shortened to the crate that it is of.
    pub file: String,
    /// Line in it, from 1.
    pub line: u64,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A type of the program.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) at: Place,
    /// Full name, with arguments.
    pub(crate) name: Rc<str>,
    /// Full name without arguments and without the compiler's parts.
    pub(crate) path: Rc<str>,
    pub(crate) size: u64,
    pub(crate) fields: Vec<Field>,
    pub(crate) form: Form,
    /// Types that it is generic over, by the name of the argument.
    pub(crate) arguments: Vec<(Rc<str>, Place)>,
}

/// Kind of a type.
#[derive(Debug)]
pub(crate) enum Form {
    /// A structure, or a plain value.
    Plain,
    /// An enum, or the state of an `async fn`.
    Variants {
        tag: Option<Tag>,
        variants: Vec<Variant>,
    },
    /// An address of another value.
    Pointer(Option<Place>),
    /// Adjacent values.
    Array { of: Place, length: u64 },
    /// Fields that share their place, only one of which is a value.
    Union,
}

/// The number that says which variant is live.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// True if it counts the states of an `async fn` or block.
    pub(crate) is_state: bool,
}

#[derive(Debug)]
pub(crate) struct Variant {
    /// Tag's value; none for the variant that stands for all other values.
    pub(crate) value: Option<u128>,
    pub(crate) field: Field,
    /// Line of the `.await`, for a state.
    pub(crate) line: Option<Line>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Rc<str>,
    pub(crate) of: Place,
    pub(crate) offset: u64,
}

impl Type {
    /// Returns whether it is the state of an `async fn`, block or closure.
    pub(crate) fn is_coroutine(&self) -> bool {
        matches!(&self.form, Form::Variants { tag: Some(tag), .. } if tag.is_state)
    }

    /// Returns whether it is a box.
    pub(crate) fn is_box(&self) -> bool {
        self.name.starts_with("alloc::boxed::Box<")
    }

    /// Returns the state of an `async fn` or block before it is polled.
    pub(crate) fn unresumed(&self) -> Option<&Field> {
        match &self.form {
            Form::Variants { variants, .. } if self.is_coroutine() => {
                Some(&variants.first()?.field)
            }
            _ => None,
        }
    }

    /// Returns the line with which the source of an `async fn` or block begins.
    pub(crate) fn first_line(&self) -> Option<&Line> {
        match &self.form {
            Form::Variants { variants, .. } if self.is_coroutine() => {
                variants.first()?.line.as_ref()
            }
            _ => None,
        }
    }
}

/// Names of files by their unit and number.
type Files = HashMap<(Place, u64), Option<Rc<str>>>;

/// The types of a program.
pub(crate) struct Types<'i, 'a> {
    pub(crate) index: &'i Index<'a>,
    known: RefCell<HashMap<Place, Option<Rc<Type>>>>,
    files: RefCell<Files>,
}

impl<'i, 'a> Types<'i, 'a> {
    pub(crate) fn new(index: &'i Index<'a>) -> Self {
        Self {
            index,
            known: RefCell::default(),
            files: RefCell::default(),
        }
    }

    /// Returns the type that is described at a place.
    pub(crate) fn get(&self, at: Place) -> Option<Rc<Type>> {
        if let Some(known) = self.known.borrow().get(&at) {
            return known.clone();
        }
        let read = self.read(at).map(Rc::new);
        if self.known.borrow().len() < MOST_TYPES {
            self.known.borrow_mut().insert(at, read.clone());
        }
        read
    }

    /// Returns the types whose trait objects have the table at an address of the program.
    pub(crate) fn behind(&self, address: u64) -> Vec<Place> {
        let (mut names, mut types) = (Vec::new(), Vec::new());
        for table in self.index.vtables(address) {
            let Some(of) = self.index.reference(*table, dw::DW_AT_containing_type) else {
                continue;
            };
            let name = self.get(of).map(|of| of.name.clone()).unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
                types.push(of);
            }
        }
        types
    }

    /// Returns the functions behind `async fn`s and blocks, by their full names.
    pub(crate) fn bodies(&self) -> HashMap<String, Place> {
        let mut bodies = HashMap::new();
        for at in self.index.bodies() {
            if let (Some(space), Some(name)) = (self.index.namespace(*at), self.index.own_name(*at))
            {
                bodies
                    .entry(format!("{space}::{}", names::printable(name)))
                    .or_insert(*at);
            }
        }
        bodies
    }

    /// Returns the variables of a function, with their types and lines.
    pub(crate) fn variables(&self, function: Place) -> Vec<(Rc<str>, Place, Line)> {
        let mut variables = Vec::new();
        let Some(unit) = self.index.unit(function) else {
            return variables;
        };
        let offset = DebugInfoOffset(function).to_unit_offset(&unit.header);
        let entries = offset.and_then(|offset| unit.entries_at_offset(offset).ok());
        let Some(mut entries) = entries else {
            return variables;
        };
        let (mut count, mut inlined) = (0, None);
        while let Ok(Some(entry)) = entries.next_dfs() {
            count += 1;
            let depth = entry.depth();
            if count > 1 && depth <= 0 || count > MOST_MEMBERS {
                break;
            }
            // Variables of functions that were inlined here are others.
            if inlined.is_some_and(|outer| depth > outer) {
                continue;
            }
            inlined = (entry.tag() == dw::DW_TAG_inlined_subroutine).then_some(depth);
            if entry.tag() == dw::DW_TAG_variable
                && let (Some(name), Some(line)) = (self.name(&unit, entry), self.line(&unit, entry))
                && let Some(of) = entry
                    .attr_value(dw::DW_AT_type)
                    .and_then(|value| reference(&unit, &value))
            {
                variables.push((name.into(), of, line));
            }
        }
        variables
    }

    fn read(&self, at: Place) -> Option<Type> {
        let unit = self.index.unit(at)?;
        let offset = DebugInfoOffset(at).to_unit_offset(&unit.header)?;
        let mut tree = unit.entries_tree(Some(offset)).ok()?;
        let root = tree.root().ok()?;
        let entry = root.entry();
        let tag = entry.tag();
        let name = self.name(&unit, entry).unwrap_or_default();
        let name = match self.index.namespace(at) {
            Some(space) if tag != dw::DW_TAG_pointer_type && tag != dw::DW_TAG_base_type => {
                format!("{space}::{name}")
            }
            _ => name,
        };
        let size = entry
            .attr_value(dw::DW_AT_byte_size)
            .and_then(|size| size.udata_value());
        let of = entry
            .attr_value(dw::DW_AT_type)
            .and_then(|value| reference(&unit, &value));
        let mut read = Type {
            at,
            path: names::path(&name).into(),
            name: name.into(),
            size: size.unwrap_or_default(),
            fields: Vec::new(),
            form: match tag {
                dw::DW_TAG_pointer_type => Form::Pointer(of),
                dw::DW_TAG_union_type => Form::Union,
                _ => Form::Plain,
            },
            arguments: Vec::new(),
        };
        let (mut children, mut count) = (root.children(), 0);
        while let Ok(Some(child)) = children.next() {
            count += 1;
            if count > MOST_MEMBERS {
                break;
            }
            let entry = child.entry();
            match entry.tag() {
                dw::DW_TAG_member => read.fields.extend(self.field(&unit, entry)),
                dw::DW_TAG_template_type_parameter => {
                    let argument = entry
                        .attr_value(dw::DW_AT_type)
                        .and_then(|value| reference(&unit, &value));
                    let name = self.name(&unit, entry).unwrap_or_default();
                    read.arguments.extend(argument.map(|at| (name.into(), at)));
                }
                dw::DW_TAG_subrange_type if tag == dw::DW_TAG_array_type => {
                    let length = entry
                        .attr_value(dw::DW_AT_count)
                        .or_else(|| entry.attr_value(dw::DW_AT_upper_bound));
                    if let (Some(of), Some(length)) =
                        (of, length.and_then(|length| length.udata_value()))
                    {
                        read.form = Form::Array { of, length };
                    }
                }
                dw::DW_TAG_variant_part => read.form = self.variants(&unit, child),
                _ => {}
            }
        }
        Some(read)
    }

    fn variants(&self, unit: &Unit<Bytes<'a>>, part: EntriesTreeNode<'_, '_, Bytes<'a>>) -> Form {
        let tag_at = part
            .entry()
            .attr_value(dw::DW_AT_discr)
            .and_then(|value| reference(unit, &value));
        let (mut tag, mut variants) = (None, Vec::new());
        let mut children = part.children();
        while let Ok(Some(child)) = children.next() {
            if variants.len() == MOST_MEMBERS {
                break;
            }
            let entry = child.entry();
            match entry.tag() {
                dw::DW_TAG_member => {
                    let gimli::UnitSectionOffset(at) =
                        entry.offset().to_unit_section_offset(&unit.header);
                    if let Some(field) = self.field(unit, entry).filter(|_| tag_at == Some(at)) {
                        tag = Some(Tag {
                            offset: field.offset,
                            size: self.size_at(field.of),
                            is_state: &*field.name == "__state",
                        });
                    }
                }
                dw::DW_TAG_variant => {
                    let value = entry.attr_value(dw::DW_AT_discr_value);
                    let value = value.and_then(|value| constant(&value));
                    let mut members = child.children();
                    while let Ok(Some(member)) = members.next() {
                        let entry = member.entry();
                        if entry.tag() == dw::DW_TAG_member
                            && let Some(field) = self.field(unit, entry)
                        {
                            variants.push(Variant {
                                value,
                                field,
                                line: self.line(unit, entry),
                            });
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
        Form::Variants { tag, variants }
    }

    /// Returns the size of a plain type, without its fields: a damaged tag may be of the type that it is in.
    fn size_at(&self, at: Place) -> u64 {
        let size = || {
            let unit = self.index.unit(at)?;
            let entry = unit
                .entry(DebugInfoOffset(at).to_unit_offset(&unit.header)?)
                .ok()?;
            entry.attr_value(dw::DW_AT_byte_size)?.udata_value()
        };
        size().unwrap_or_default()
    }

    fn field(
        &self,
        unit: &Unit<Bytes<'a>>,
        entry: &DebuggingInformationEntry<Bytes<'a>>,
    ) -> Option<Field> {
        let offset = entry.attr_value(dw::DW_AT_data_member_location);
        Some(Field {
            name: self.name(unit, entry).unwrap_or_default().into(),
            of: reference(unit, &entry.attr_value(dw::DW_AT_type)?)?,
            offset: offset
                .and_then(|offset| offset.udata_value())
                .unwrap_or_default(),
        })
    }

    fn name(
        &self,
        unit: &Unit<Bytes<'a>>,
        entry: &DebuggingInformationEntry<Bytes<'a>>,
    ) -> Option<String> {
        let name = entry.attr_value(dw::DW_AT_name)?;
        let name = self.index.dwarf.attr_string(unit, name).ok()?;
        Some(names::printable(name.slice()))
    }

    fn line(
        &self,
        unit: &Unit<Bytes<'a>>,
        entry: &DebuggingInformationEntry<Bytes<'a>>,
    ) -> Option<Line> {
        let line = entry.attr_value(dw::DW_AT_decl_line)?.udata_value()?;
        let file = match entry.attr_value(dw::DW_AT_decl_file)? {
            AttributeValue::FileIndex(file) => file,
            other => other.udata_value()?,
        };
        let gimli::UnitSectionOffset(start) = unit.header.offset();
        let mut files = self.files.borrow_mut();
        let file = files
            .entry((start, file))
            .or_insert_with(|| self.file(unit, file));
        Some(Line {
            file: file.as_deref()?.to_owned(),
            line,
        })
    }

    fn file(&self, unit: &Unit<Bytes<'a>>, number: u64) -> Option<Rc<str>> {
        let header = unit.line_program.as_ref()?.header();
        let file = header.file(number)?;
        let string = |value| {
            self.index
                .dwarf
                .attr_string(unit, value)
                .ok()
                .map(|text| names::printable(text.slice()))
        };
        let compiled_in = unit
            .comp_dir
            .map(|path| names::printable(path.slice()))
            .unwrap_or_default();
        let name = string(file.path_name())?;
        let folder = file.directory(header).and_then(string).unwrap_or_default();
        // Each may be relative to what stands before it.
        let mut path = compiled_in.clone();
        for part in [folder, name] {
            if part.starts_with('/') {
                path = part;
            } else if !part.is_empty() {
                path = format!("{path}/{part}");
            }
        }
        Some(names::of_file(&path, &compiled_in).into())
    }
}

/// Returns a constant without a sign: a tag is compared by its bits.
fn constant(value: &AttributeValue<Bytes<'_>>) -> Option<u128> {
    match value {
        AttributeValue::Block(bytes) if bytes.len() <= 16 => {
            let bytes = bytes.slice().iter().rev();
            Some(bytes.fold(0, |number, byte| number << 8 | u128::from(*byte)))
        }
        AttributeValue::Sdata(number) => Some(u128::from(number.cast_unsigned())),
        other => other.udata_value().map(u128::from),
    }
}
