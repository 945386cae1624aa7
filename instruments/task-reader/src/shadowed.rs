//! Variables that the debug information hides behind an argument of the same name.
//!
//! In the state of an `async fn`, the compiler describes every variable with the name of an argument as if it were that
//! argument: after `let clients = clients.lock().await`, the guard is missing and `clients` stands there twice. The
//! function's own description still has the guard with its type and line, and the guard itself lies where the state has
//! undescribed bytes. So each such place is tried: it counts if it leads to something that tasks wait for.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use ecosystem::kinds;

use crate::pass::Place;
use crate::types::{Field, Line, Type, Types, Variant};
use crate::value::{Reading, Value};

/// Bytes of a word, by which guards are aligned.
const WORD: u64 = 8;

/// Most undescribed words of a state that are tried.
const MOST_WORDS: u64 = 256;

/// A variable with the name of an argument.
#[derive(Debug)]
struct Shadow {
    name: Rc<str>,
    of: Place,
    line: Line,
}

/// The functions behind `async fn`s, by the names of their types.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    places: OnceCell<HashMap<String, Place>>,
    shadows: RefCell<HashMap<Place, Rc<Vec<Shadow>>>>,
}

/// A value that may be such a variable.
pub(crate) struct Candidate {
    pub(crate) name: Rc<str>,
    pub(crate) value: Value,
    pub(crate) of: Rc<Type>,
}

impl Bodies {
    /// Returns the values in undescribed places of a state that may be guards of its function.
    pub(crate) fn candidates(
        &self,
        reading: &Reading<'_, '_, '_>,
        of: &Type,
        state: Value,
        variant: &Variant,
    ) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let Some(line) = &variant.line else {
            return candidates;
        };
        for shadow in self.shadows(reading.types, of).iter() {
            // A variable lives from its declaration on.
            let is_before = shadow.line.file == line.file && shadow.line.line <= line.line;
            let Some(of_value) = reading.types.get(shadow.of).filter(|_| is_before) else {
                continue;
            };
            for address in undescribed(reading, state) {
                let value = Value {
                    address,
                    of: shadow.of,
                };
                candidates.push(Candidate {
                    name: shadow.name.clone(),
                    value,
                    of: of_value.clone(),
                });
            }
        }
        candidates
    }

    fn shadows(&self, types: &Types<'_, '_>, of: &Type) -> Rc<Vec<Shadow>> {
        if let Some(known) = self.shadows.borrow().get(&of.at) {
            return known.clone();
        }
        let found = Rc::new(self.read(types, of).unwrap_or_default());
        self.shadows.borrow_mut().insert(of.at, found.clone());
        found
    }

    fn read(&self, types: &Types<'_, '_>, of: &Type) -> Option<Vec<Shadow>> {
        let arguments = types.get(of.unresumed()?.of)?;
        let places = self.places.get_or_init(|| types.bodies());
        let mut shadows = Vec::new();
        for (name, at, line) in types.variables(*places.get(&of.name.replacen("_env#", "#", 1))?) {
            let Some(variable) = types.get(at).filter(|of| kinds::holder(&of.path).is_some())
            else {
                continue;
            };
            // The argument itself is a variable of the function, too.
            let hides = |field: &Field| {
                let argument = types.get(field.of);
                field.name == name
                    && argument.is_some_and(|argument| argument.name != variable.name)
            };
            if arguments.fields.iter().any(hides) {
                shadows.push(Shadow { name, of: at, line });
            }
        }
        Some(shadows)
    }
}

/// Returns the addresses of words that no field of a state covers.
fn undescribed(reading: &Reading<'_, '_, '_>, state: Value) -> Vec<u64> {
    let Some(of) = reading.type_of(state) else {
        return Vec::new();
    };
    let end = |field: &Field| {
        let size = reading
            .types
            .get(field.of)
            .map_or(0, |of| of.size_or_pointer());
        field.offset.saturating_add(size)
    };
    let mut free = Vec::new();
    for number in 0..(of.size / WORD).min(MOST_WORDS) {
        let (from, to) = (number * WORD, number * WORD + WORD);
        let is_covered = of
            .fields
            .iter()
            .any(|field| field.offset < to && from < end(field));
        if let Some(address) = state.address.checked_add(from).filter(|_| !is_covered) {
            free.push(address);
        }
    }
    free
}
