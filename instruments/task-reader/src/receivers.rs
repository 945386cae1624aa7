//! Tasks whose code receives datagrams, as the types of their futures say: an `async fn` has a state for each of its awaits, and
//! one of them is that of a datagram.
//!
//! So a task is known to receive even if it never waits for that, because there is always something to receive.

use std::cell::RefCell;
use std::collections::HashMap;

use ecosystem::PartMeaning;

use crate::model::{Frame, Stage};
use crate::names;
use crate::pass::Place;
use crate::types::{Form, Line, Type, Types};

/// Deepest nesting of types that is looked through.
const DEEPEST: usize = 64;

/// Name of the future that is awaited.
const AWAITED: &str = "__awaitee";

/// Types of futures, by whether they receive datagrams.
#[derive(Default)]
pub(crate) struct Receivers {
    known: RefCell<HashMap<Place, Receives>>,
}

/// Whether a future receives datagrams.
#[derive(Clone)]
enum Receives {
    Nothing,
    /// It is a socket's own future.
    Itself,
    /// An `async fn` or block in it does, at an await.
    At(Frame),
}

impl Receivers {
    /// Returns the innermost `async fn` or block of a future that receives datagrams, with the line of that await.
    pub(crate) fn receives(&self, types: &Types<'_, '_>, future: Place) -> Option<Frame> {
        match self.look(types, future, 0) {
            Receives::At(frame) => Some(frame),
            Receives::Nothing | Receives::Itself => None,
        }
    }

    fn look(&self, types: &Types<'_, '_>, at: Place, depth: usize) -> Receives {
        if let Some(known) = self.known.borrow().get(&at) {
            return known.clone();
        }
        if depth > DEEPEST {
            return Receives::Nothing;
        }
        // A type that contains itself receives what its other parts do.
        self.known.borrow_mut().insert(at, Receives::Nothing);
        let found = match types.get(at) {
            Some(of) => self.look_into(types, &of, depth + 1),
            None => Receives::Nothing,
        };
        self.known.borrow_mut().insert(at, found.clone());
        found
    }

    fn look_into(&self, types: &Types<'_, '_>, of: &Type, depth: usize) -> Receives {
        if PartMeaning::ReceivesDatagrams.fits(&of.path) {
            return Receives::Itself;
        }
        let variants = match &of.form {
            Form::Variants { variants, .. } => &variants[..],
            _ => &[],
        };
        if of.is_coroutine() {
            for variant in variants {
                let state = types.get(variant.field.of);
                let mut fields = state.iter().flat_map(|state| &state.fields);
                let awaited = fields.find(|field| &*field.name == AWAITED);
                match awaited.map(|awaited| self.look(types, awaited.of, depth)) {
                    Some(Receives::Itself) => {
                        // The await of a macro such as `select!` is in the macro's own file.
                        let line = variant.line.as_ref();
                        let is_elsewhere =
                            |begins: &&Line| line.is_some_and(|line| line.file != begins.file);
                        return Receives::At(Frame {
                            depth: 0,
                            future: names::of_future(&of.name),
                            begins: of.first_line().filter(is_elsewhere).cloned(),
                            line: variant.line.clone(),
                            stage: Stage::Suspended,
                        });
                    }
                    Some(found @ Receives::At(_)) => return found,
                    Some(Receives::Nothing) | None => {}
                }
            }
            return Receives::Nothing;
        }
        let mut parts: Vec<Place> = of.fields.iter().map(|field| field.of).collect();
        parts.extend(variants.iter().map(|variant| variant.field.of));
        // Only an owner polls what a pointer leads to.
        if let Form::Pointer(Some(target)) = of.form
            && (of.is_box() || of.name.starts_with("&mut "))
        {
            parts.push(target);
        }
        for part in parts {
            let found = self.look(types, part, depth);
            if !matches!(found, Receives::Nothing) {
                return found;
            }
        }
        Receives::Nothing
    }
}
