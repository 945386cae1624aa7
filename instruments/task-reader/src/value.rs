//! Values in the memory of the process: an address and a type, and the ways from one to the next.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use crate::memory::Memory;
use crate::names;
use crate::pass::Place;
use crate::types::{Field, Form, Type, Types, Variant};

/// Most steps from a value to the field that is looked for.
const DEEPEST: usize = 16;

/// Longest text that is read, in bytes.
const LONGEST_TEXT: u64 = 1024;

/// Most values that are looked at for one field.
const MOST_VALUES: usize = 2048;

/// A value of a type at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    pub(crate) address: u64,
    pub(crate) of: Place,
}

/// Rule for pointers in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    WithinValue,
    ThroughPointers,
}

/// The memory of a process, read by the types of its program.
pub(crate) struct Reading<'r, 'i, 'a> {
    pub(crate) types: &'r Types<'i, 'a>,
    pub(crate) memory: &'r Memory,
    /// By how much the program lies higher than it was linked.
    pub(crate) bias: u64,
}

impl Reading<'_, '_, '_> {
    pub(crate) fn type_of(&self, value: Value) -> Option<Rc<Type>> {
        self.types.get(value.of)
    }

    /// Returns where a value lies.
    pub(crate) fn range(&self, value: Value) -> Option<Range<u64>> {
        let size = self.type_of(value)?.size_or_pointer();
        Some(value.address..value.address.checked_add(size)?)
    }

    /// Returns the live variant of an enum or of the state of an `async fn`.
    pub(crate) fn live<'t>(&self, value: Value, of: &'t Type) -> Option<&'t Variant> {
        let Form::Variants { tag, variants } = &of.form else {
            return None;
        };
        let Some(tag) = tag else {
            return match &variants[..] {
                [only] => Some(only),
                _ => None,
            };
        };
        let address = value.address.checked_add(tag.offset)?;
        let number = self.memory.number(address, tag.size)?;
        let mask = match tag.size {
            0..16 => (1_u128 << (tag.size * 8)) - 1,
            _ => u128::MAX,
        };
        let is_number =
            |variant: &&Variant| variant.value.is_some_and(|value| value & mask == number);
        let exact = variants.iter().find(is_number);
        exact.or_else(|| variants.iter().find(|variant| variant.value.is_none()))
    }

    /// Returns the live fields of a value with their values.
    pub(crate) fn fields(&self, value: Value, of: &Type) -> Vec<(Field, Value)> {
        let mut fields = Vec::new();
        let live = self.live(value, of).map(|variant| &variant.field);
        // Which field of a union is a value, nothing says. `MaybeUninit` and `ManuallyDrop` have one that is more than `()`.
        let sized = |field: &&Field| self.types.get(field.of).is_some_and(|of| of.size > 0);
        let is_union = matches!(of.form, Form::Union);
        if is_union && of.fields.iter().filter(sized).count() > 1 {
            return fields;
        }
        for field in of.fields.iter().chain(live) {
            if let Some(address) = value.address.checked_add(field.offset) {
                fields.push((
                    field.clone(),
                    Value {
                        address,
                        of: field.of,
                    },
                ));
            }
        }
        fields
    }

    /// Returns the value that a pointer leads to, unless it is null.
    pub(crate) fn target(&self, value: Value, of: &Type) -> Option<Value> {
        let Form::Pointer(Some(of)) = of.form else {
            return None;
        };
        let address = self
            .memory
            .word(value.address)
            .filter(|address| *address != 0)?;
        Some(Value { address, of })
    }

    /// Returns the nearest field of a name within a value, or `None` if there is none or several are equally near.
    pub(crate) fn find(&self, from: Value, name: &str, reach: Reach) -> Option<Value> {
        let (mut level, mut seen) = (vec![from], HashSet::new());
        for _ in 0..DEEPEST {
            let (mut found, mut next) = (Vec::new(), Vec::new());
            for value in level {
                if seen.len() >= MOST_VALUES || !seen.insert(value) {
                    continue;
                }
                let Some(of) = self.type_of(value) else {
                    continue;
                };
                for (field, value) in self.fields(value, &of) {
                    if &*field.name == name {
                        found.push(value);
                    } else {
                        next.push(value);
                    }
                }
                if reach == Reach::ThroughPointers {
                    next.extend(self.target(value, &of));
                }
            }
            found.dedup();
            match found[..] {
                [] => level = next,
                [one] => return Some(one),
                _ => return None,
            }
        }
        None
    }

    /// Follows a path of fields.
    pub(crate) fn follow(&self, from: Value, path: &[&str]) -> Option<Value> {
        let mut value = from;
        for step in path {
            value = self.find(value, step, Reach::ThroughPointers)?;
        }
        Some(value)
    }

    /// Returns the number within a value that consists of one, such as an atomic.
    pub(crate) fn number(&self, value: Value) -> Option<u64> {
        let (value, of) = self.innermost(value)?;
        let is_plain = matches!(of.form, Form::Plain | Form::Pointer(_)) && of.fields.is_empty();
        let number = self.memory.number(value.address, of.size_or_pointer())?;
        is_plain.then(|| u64::try_from(number).ok()).flatten()
    }

    /// Returns the text of a reference to constant text, such as a file's name.
    pub(crate) fn text(&self, value: Value) -> Option<String> {
        let start = self.pointee(self.find(value, "data_ptr", Reach::WithinValue)?)?;
        let length = self.number(self.find(value, "length", Reach::WithinValue)?)?;
        let mut bytes = Vec::new();
        for offset in 0..length.min(LONGEST_TEXT) {
            let byte = self
                .memory
                .constant_byte(start.address.checked_add(offset)?)?;
            bytes.push(byte);
        }
        Some(names::printable(&bytes))
    }

    /// Returns where a pointer within a value leads that consists of one, such as `Option<NonNull<T>>` or `Arc<T>`.
    pub(crate) fn pointee(&self, value: Value) -> Option<Value> {
        let (value, of) = self.innermost(value)?;
        self.target(value, &of)
    }

    /// Returns the address that identifies a resource: where a pointer leads, or where the value itself lies.
    pub(crate) fn resource(&self, value: Value) -> Option<Value> {
        let (inner, of) = self.innermost(value)?;
        match of.form {
            Form::Pointer(_) => self.target(inner, &of),
            _ => Some(value),
        }
    }

    /// Enters structures and live variants that have one field of a size.
    fn innermost(&self, from: Value) -> Option<(Value, Rc<Type>)> {
        let mut value = from;
        for _ in 0..DEEPEST {
            let of = self.type_of(value)?;
            let mut sized = Vec::new();
            for (_, field) in self.fields(value, &of) {
                if self
                    .type_of(field)
                    .is_some_and(|of| of.size_or_pointer() > 0)
                {
                    sized.push(field);
                }
            }
            match sized[..] {
                [only] => value = only,
                _ => return Some((value, of)),
            }
        }
        None
    }
}

impl Type {
    /// Returns its size: the compiler writes none for a pointer.
    pub(crate) fn size_or_pointer(&self) -> u64 {
        match self.form {
            Form::Pointer(_) => 8,
            Form::Array { .. } => self.size.max(1),
            _ => self.size,
        }
    }
}
