//! Variables of an `async fn` or block that live across the await at which it is suspended.
//!
//! The compiler lists a variable in a state if it needs the variable's place there. It needs the place of a value that was
//! moved, too, if the value was ever borrowed. What the state drops tells both apart: see `drops`.
//!
//! Captured variables stand last in each state, whether or not they were moved. An `async fn` moves its arguments into
//! variables first, which stand before.

use std::rc::Rc;

use crate::types::{Field, Form, Type, Types};
use crate::value::Value;

/// Name of the future that is awaited.
const AWAITED: &str = "__awaitee";

/// A variable.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) name: Rc<str>,
    pub(crate) value: Value,
}

/// Returns the variables in the fields of a state of this `async fn` or block.
pub(crate) fn locals(types: &Types<'_, '_>, of: &Type, fields: &[(Field, Value)]) -> Vec<Local> {
    let Form::Variants { variants, .. } = &of.form else {
        return Vec::new();
    };
    let captured = variants
        .first()
        .and_then(|unresumed| types.get(unresumed.field.of))
        .map_or(0, |unresumed| unresumed.fields.len());
    let last = of.name.rsplit("::").next().unwrap_or_default();
    let is_async_fn = last.starts_with("{async_fn");
    let shown = if is_async_fn {
        fields.len().saturating_sub(captured)
    } else {
        fields.len()
    };
    let mut locals = Vec::new();
    for (field, value) in fields.iter().take(shown) {
        if &*field.name != AWAITED {
            locals.push(Local {
                name: field.name.clone(),
                value: *value,
            });
        }
    }
    locals
}

/// Returns the futures that a state awaits: one.
pub(crate) fn awaited(fields: &[(Field, Value)]) -> impl Iterator<Item = &(Field, Value)> {
    fields.iter().filter(|(field, _)| &*field.name == AWAITED)
}
