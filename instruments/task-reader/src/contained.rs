//! Values within a container: elements of arrays, boxed slices and vectors, and members of sets that poll them.

use std::collections::HashSet;

use ecosystem::kinds::{self, Set};

use crate::pass::Place;
use crate::types::{Form, Type};
use crate::value::{Reach, Reading, Value};

/// Most elements that are looked at.
const MOST_ELEMENTS: u64 = 256;

/// Returns the elements of a container with whether some were left out, or `None` if it is no container.
pub(crate) fn contained(
    reading: &Reading<'_, '_, '_>,
    value: Value,
    of: &Type,
) -> Option<(Vec<Value>, bool)> {
    if let Some(set) = kinds::set(&of.path) {
        return Some(members(reading, value, set));
    }
    if let Form::Array { of, length } = of.form {
        return Some(adjacent(reading, Value { of, ..value }, length));
    }
    if is_boxed_slice(of) {
        let data = reading.pointee(reading.find(value, "data_ptr", Reach::WithinValue)?)?;
        let length = reading.number(reading.find(value, "length", Reach::WithinValue)?)?;
        return Some(adjacent(reading, data, length));
    }
    if is_vector(of) {
        let data = reading.pointee(reading.find(value, "ptr", Reach::WithinValue)?)?;
        let length = reading.number(reading.find(value, "len", Reach::WithinValue)?)?;
        let (_, element) = of.arguments.first()?;
        return Some(adjacent(
            reading,
            Value {
                of: *element,
                ..data
            },
            length,
        ));
    }
    None
}

/// Returns the number of tasks whose handles a container has, or `None` if it is no container of handles.
pub(crate) fn tasks_in(reading: &Reading<'_, '_, '_>, value: Value, of: &Type) -> Option<u64> {
    if let Some(set) = kinds::set(&of.path) {
        return reading.number(reading.follow(value, set.number.as_ref()?)?);
    }
    let (_, element) = of.arguments.first().filter(|_| is_vector(of))?;
    kinds::handle(&reading.types.get(*element)?.path)?;
    reading.number(reading.find(value, "len", Reach::WithinValue)?)
}

/// Returns the types of a container's elements, if its fields do not show them.
pub(crate) fn element(reading: &Reading<'_, '_, '_>, of: &Type) -> Option<Place> {
    if is_vector(of) {
        return of.arguments.first().map(|(_, at)| *at);
    }
    if is_boxed_slice(of) {
        let data = of.fields.iter().find(|field| &*field.name == "data_ptr")?;
        if let Form::Pointer(target) = reading.types.get(data.of)?.form {
            return target;
        }
    }
    match of.form {
        Form::Array { of, .. } => Some(of),
        _ => None,
    }
}

fn is_vector(of: &Type) -> bool {
    &*of.path == "alloc::vec::Vec"
}

fn is_boxed_slice(of: &Type) -> bool {
    of.name.starts_with("alloc::boxed::Box<[")
}

fn adjacent(reading: &Reading<'_, '_, '_>, first: Value, length: u64) -> (Vec<Value>, bool) {
    let size = reading
        .types
        .get(first.of)
        .map_or(0, |of| of.size_or_pointer());
    let mut values = Vec::new();
    for number in 0..length.min(MOST_ELEMENTS) {
        let offset = number.checked_mul(size);
        let Some(address) = offset.and_then(|offset| first.address.checked_add(offset)) else {
            break;
        };
        values.push(Value { address, ..first });
    }
    (values, length > MOST_ELEMENTS)
}

/// Walks the lists of a set.
fn members(reading: &Reading<'_, '_, '_>, set: Value, row: &Set) -> (Vec<Value>, bool) {
    let (mut values, mut seen, mut is_cut) = (Vec::new(), HashSet::new(), false);
    for first in &row.first {
        let mut at = reading
            .follow(set, first)
            .and_then(|first| reading.pointee(first));
        while let Some(member) = at.filter(|member| seen.insert(member.address)) {
            values.extend(reading.follow(member, &row.item));
            if seen.len() as u64 >= MOST_ELEMENTS {
                is_cut = true;
                break;
            }
            at = reading
                .follow(member, &row.next)
                .and_then(|next| reading.pointee(next));
        }
    }
    (values, is_cut)
}
