//! Variables of an `async fn` or block that live across the await at which it is suspended.
//!
//! The compiler lists a variable in a state if it needs the variable's place there. It needs the place of a value that was
//! moved, too, if the value was ever borrowed. Three facts of its layout tell more:
//!
//! - Captured variables stand last in each state, whether or not they were moved. An `async fn` moves its arguments into
//!   variables first, which stand before.
//! - A variable that was moved on some way, or that cleaning up after a panic may meet moved and not moved, has a **flag**: a
//!   `bool` without a name, which is false once the variable is gone.
//! - Nothing says which variable a flag is of, but a flag lives only where its variable does. So a false flag speaks against
//!   each variable that is listed wherever the flag is.
//!
//! A program that aborts on panics has nothing to clean up then, and so lacks flags: nothing is certain there.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::pass::Place;
use crate::types::{Field, Form, Type, Types};
use crate::value::{Reading, Value};

/// Name of the future that is awaited.
const AWAITED: &str = "__awaitee";

/// A variable.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) name: Rc<str>,
    pub(crate) value: Value,
    /// True if it may have been moved or dropped.
    pub(crate) may_be_gone: bool,
}

/// The states in which each variable or flag is listed, by name and type.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    states: HashMap<(Rc<str>, Place), BTreeSet<usize>>,
    captured: usize,
    is_async_fn: bool,
}

impl Layout {
    /// Reads the layout of an `async fn` or block.
    pub(crate) fn of(types: &Types<'_, '_>, of: &Type) -> Self {
        let Form::Variants { variants, .. } = &of.form else {
            return Self::default();
        };
        let fields = |at: Place| {
            types
                .get(at)
                .map(|of| of.fields.clone())
                .unwrap_or_default()
        };
        let mut layout = Self {
            states: HashMap::new(),
            captured: variants
                .first()
                .map_or(0, |unresumed| fields(unresumed.field.of).len()),
            is_async_fn: of
                .name
                .rsplit("::")
                .next()
                .is_some_and(|last| last.starts_with("{async_fn")),
        };
        for (state, variant) in variants.iter().enumerate() {
            let fields = fields(variant.field.of);
            // The states before and after hold captured variables alone.
            for field in layout.own(&fields) {
                layout
                    .states
                    .entry((field.name.clone(), field.of))
                    .or_default()
                    .insert(state);
            }
        }
        layout
    }

    /// Returns the fields that are no captured variables.
    fn own<'f>(&self, fields: &'f [Field]) -> &'f [Field] {
        fields
            .get(..fields.len().saturating_sub(self.captured))
            .unwrap_or_default()
    }

    /// Returns the variables of a state, whose fields these are.
    pub(crate) fn locals(
        &self,
        reading: &Reading<'_, '_, '_>,
        fields: &[(Field, Value)],
    ) -> Vec<Local> {
        let own = fields.len().saturating_sub(self.captured);
        let (own, captured) = fields.split_at(own);
        let is_false = |value: Value| reading.memory.number(value.address, 1) == Some(0);
        let mut gone: Vec<&BTreeSet<usize>> = Vec::new();
        for (field, value) in own
            .iter()
            .filter(|(field, value)| is_flag(reading, field, *value))
        {
            if is_false(*value) {
                gone.extend(self.states.get(&(field.name.clone(), field.of)));
            }
        }
        let has_flags = reading.types.index.unwinds();
        let mut locals = Vec::new();
        for (field, value) in own {
            if &*field.name == AWAITED || is_flag(reading, field, *value) {
                continue;
            }
            let states = self.states.get(&(field.name.clone(), field.of));
            let is_gone =
                |flag: &&BTreeSet<usize>| states.is_none_or(|states| flag.is_subset(states));
            locals.push(Local {
                name: field.name.clone(),
                value: *value,
                may_be_gone: !has_flags || gone.iter().any(is_gone),
            });
        }
        if !self.is_async_fn {
            for (field, value) in captured {
                locals.push(Local {
                    name: field.name.clone(),
                    value: *value,
                    may_be_gone: true,
                });
            }
        }
        locals
    }
}

/// Returns the futures that a state awaits: one.
pub(crate) fn awaited(fields: &[(Field, Value)]) -> impl Iterator<Item = &(Field, Value)> {
    fields.iter().filter(|(field, _)| &*field.name == AWAITED)
}

/// Returns whether a field says that a variable was moved: it is a `bool` without a name of its own.
fn is_flag(reading: &Reading<'_, '_, '_>, field: &Field, value: Value) -> bool {
    let number = field.name.strip_prefix("__").map(str::parse::<u32>);
    let is_unnamed = number.is_some_and(|number| number.is_ok());
    is_unnamed && reading.type_of(value).is_some_and(|of| &*of.name == "bool")
}
