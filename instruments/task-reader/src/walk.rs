//! The futures of a task, from the outermost to those at which it waits, and what each keeps.
//!
//! From a future's type, every live field that is or contains a future is followed: of an `async fn` the future that it
//! awaits, of any other all fields, through enums by their live variant, through boxes, pinned references, and trait
//! objects by their table. A type is a future if it is the state of an `async fn` or block, or has a method `poll`.
//! A stream behind a trait object is shown like a future, and so are the bodies that a connection sends.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ecosystem::kinds;

use crate::contained::{contained, element, tasks_in};
use crate::locals;
use crate::names;
use crate::pass::Place;
use crate::receivers::Receivers;
use crate::shadowed::Bodies;
use crate::sockets::Sockets;
use crate::types::{Field, Form, Line, Type, Variant};
use crate::value::{Reading, Value};

/// Most futures that are followed in one task.
const MOST_FUTURES: usize = 512;

/// Deepest nesting of futures.
const DEEPEST_FUTURES: usize = 128;

/// Deepest nesting of values between two futures.
const DEEPEST_VALUES: usize = 16;

/// Deepest nesting of types that is looked through.
const DEEPEST_TYPES: usize = 64;

/// Trait of futures.
const FUTURE: &str = "core::future::future::Future";

/// Trait of streams.
const STREAM: &str = "futures_core::stream::Stream";

/// Crates whose futures are connections, and poll the bodies that they keep.
const CONNECTIONS: [&str; 2] = ["actix_http", "hyper"];

/// Traits of bodies. Anything but a connection that keeps one may have put it aside.
const BODIES: [&str; 2] = [
    "http_body::Body",
    "actix_http::body::message_body::MessageBody",
];

/// A future that a task polls.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) of: Rc<Type>,
    pub(crate) stage: Stage,
    /// True for the body of an answer, which is sent.
    pub(crate) is_body: bool,
    /// Futures that it polls.
    pub(crate) children: Vec<Node>,
    /// Values that it keeps, and that may hold a resource.
    pub(crate) kept: Vec<Kept>,
    /// Handles of tasks that it keeps.
    pub(crate) handles: Vec<Kept>,
    /// Containers of such handles, each with their number.
    pub(crate) sets: Vec<(Kept, u64)>,
    /// Futures that it keeps and does not await now.
    pub(crate) aside: Vec<Node>,
    /// Parts that could not be followed.
    pub(crate) unseen: Vec<String>,
}

impl Node {
    /// Returns the future in a box, or in a pinned one.
    pub(crate) fn boxed(&self) -> Option<&Self> {
        let inner = self.children.first().filter(|_| is_pointer(&self.of))?;
        Some(inner.boxed().unwrap_or(inner))
    }

    /// Returns the future in a box, or in a pinned one: `block_on` boxes large futures.
    pub(crate) fn unboxed(mut self) -> Self {
        while is_pointer(&self.of)
            && let Some(inner) = self.children.pop()
        {
            self = inner;
        }
        self
    }
}

/// Stage of a future.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// An `async fn` or block that was not polled yet, with its first line.
    NotBegun(Option<Line>),
    /// An `async fn` or block, suspended at the `.await` of this line.
    Suspended(Option<Line>),
    /// It has returned, or panicked.
    Over,
    /// Any other future.
    Other,
    /// Its memory cannot be read.
    Unreadable,
}

/// A value that may hold a resource.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) value: Value,
    pub(crate) of: Rc<Type>,
    /// Name of the variable or field that has it.
    pub(crate) name: Rc<str>,
    /// True if only its function says that there is such a variable, and its place is a guess.
    pub(crate) is_guessed: bool,
}

/// Aim of a search within a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Futures that are polled through this value, and what it keeps.
    Polled,
    /// The same within a connection, with the bodies that it sends.
    Sent,
    /// Futures behind a reference: what is borrowed is kept by others.
    Borrowed,
    /// A local that is not awaited.
    Aside,
}

#[derive(Default)]
struct Found {
    futures: Vec<Value>,
    bodies: Vec<Value>,
    kept: Vec<Kept>,
    handles: Vec<Kept>,
    sets: Vec<(Kept, u64)>,
    unseen: Vec<String>,
}

/// Walks over the futures of tasks.
pub(crate) struct Walker<'w, 'r, 'i, 'a> {
    pub(crate) reading: &'w Reading<'r, 'i, 'a>,
    bodies: &'w Bodies,
    pub(crate) sockets: Sockets,
    pub(crate) receivers: Receivers,
    /// Whether a type can contain a future or a holder.
    matters: RefCell<HashMap<Place, bool>>,
}

/// Futures and values of a task that were met.
#[derive(Default)]
struct Met {
    values: HashSet<Value>,
    futures: usize,
}

impl<'w, 'r, 'i, 'a> Walker<'w, 'r, 'i, 'a> {
    pub(crate) fn new(reading: &'w Reading<'r, 'i, 'a>, bodies: &'w Bodies) -> Self {
        Self {
            reading,
            bodies,
            sockets: Sockets::default(),
            receivers: Receivers::default(),
            matters: RefCell::default(),
        }
    }

    /// Returns a task's future with all that it polls.
    pub(crate) fn walk(&self, future: Value) -> Option<Node> {
        self.node(future, false, 0, &mut Met::default())
    }

    fn node(&self, value: Value, is_body: bool, depth: usize, met: &mut Met) -> Option<Node> {
        let of = self.reading.type_of(value)?;
        if depth > DEEPEST_FUTURES || met.futures >= MOST_FUTURES || !met.values.insert(value) {
            return None;
        }
        met.futures += 1;
        let mut node = Node {
            value,
            of: of.clone(),
            stage: Stage::Other,
            is_body,
            children: Vec::new(),
            kept: Vec::new(),
            handles: Vec::new(),
            sets: Vec::new(),
            aside: Vec::new(),
            unseen: Vec::new(),
        };
        if of.is_coroutine() {
            match self.reading.live(value, &of) {
                Some(variant) => self.coroutine(&mut node, variant, depth, met),
                None => node.stage = Stage::Unreadable,
            }
        } else {
            let of_crate = of.path.split("::").next().unwrap_or_default();
            let search = if is_body || CONNECTIONS.contains(&of_crate) {
                Search::Sent
            } else {
                Search::Polled
            };
            let (timers, mut found) = (kinds::timers(&of.path), Found::default());
            for (field, value) in self.reading.fields(value, &of) {
                // The timer of a limit is no wait of its own.
                if !timers.contains(&&*field.name) {
                    self.search(value, &field.name, search, 0, &mut found);
                }
            }
            self.add(&mut node, found, depth, met);
        }
        Some(node)
    }

    /// Reads the state of an `async fn` or block.
    fn coroutine(&self, node: &mut Node, variant: &Variant, depth: usize, met: &mut Met) {
        let Some(address) = node.value.address.checked_add(variant.field.offset) else {
            return;
        };
        let locals = Value {
            address,
            of: variant.field.of,
        };
        let Some(of) = self.reading.type_of(locals) else {
            return;
        };
        let state = of.name.rsplit("::").next().unwrap_or_default();
        node.stage = match state {
            "Returned" | "Panicked" => Stage::Over,
            "Unresumed" => Stage::NotBegun(variant.line.clone()),
            _ => Stage::Suspended(variant.line.clone()),
        };
        if node.stage == Stage::Over {
            return;
        }
        let fields = self.reading.fields(locals, &of);
        for (field, value) in locals::awaited(&fields) {
            let mut found = Found::default();
            self.search(*value, &field.name, Search::Polled, 0, &mut found);
            // What is awaited is a future, even if all of its `poll` was inlined.
            let is_plain = self
                .reading
                .type_of(*value)
                .is_some_and(|of| !is_pointer(&of));
            if found.futures.is_empty() && found.unseen.is_empty() && is_plain {
                found.futures.push(*value);
            } else if found.futures.is_empty() && found.unseen.is_empty() {
                let name = self
                    .reading
                    .type_of(*value)
                    .map(|of| names::short(&of.name));
                found
                    .unseen
                    .push(format!("the awaited {}", name.unwrap_or_default()));
            }
            self.add(node, found, depth, met);
        }
        node.kept.extend(self.shadowed(&node.of, locals, variant));
        for local in locals::locals(self.reading.types, &node.of, &fields) {
            let mut found = Found::default();
            self.search(local.value, &local.name, Search::Aside, 0, &mut found);
            let mut is_new = |kept: &Kept| met.values.insert(kept.value);
            node.kept.extend(found.kept.into_iter().filter(&mut is_new));
            node.handles
                .extend(found.handles.into_iter().filter(&mut is_new));
            let sets = found.sets.into_iter();
            node.sets.extend(sets.filter(|(set, _)| is_new(set)));
            for future in found.futures {
                node.aside.extend(self.node(future, false, depth + 1, met));
            }
        }
    }

    /// Returns what a state may keep that the debug information hides.
    fn shadowed(&self, of: &Type, state: Value, variant: &Variant) -> Vec<Kept> {
        let candidates = self
            .bodies
            .candidates(self.reading, of, state, variant)
            .into_iter();
        let kept = candidates.map(|found| Kept {
            value: found.value,
            of: found.of,
            name: found.name,
            is_guessed: true,
        });
        kept.collect()
    }

    fn add(&self, node: &mut Node, found: Found, depth: usize, met: &mut Met) {
        let futures = found.futures.into_iter().map(|future| (future, false));
        for (value, is_body) in futures.chain(found.bodies.into_iter().map(|body| (body, true))) {
            node.children
                .extend(self.node(value, is_body, depth + 1, met));
        }
        for kept in found.kept {
            if met.values.insert(kept.value) {
                node.kept.push(kept);
            }
        }
        for (set, number) in found.sets {
            if met.values.insert(set.value) {
                node.sets.push((set, number));
            }
        }
        node.unseen.extend(found.unseen);
    }

    /// Looks for futures and holders in a value that is no future itself, or for the value itself if it is one.
    fn search(
        &self,
        value: Value,
        name: &Rc<str>,
        search: Search,
        depth: usize,
        found: &mut Found,
    ) {
        if depth > DEEPEST_VALUES || !self.matters(value.of, 0) {
            return;
        }
        let Some(of) = self.reading.type_of(value) else {
            return;
        };
        let is_handle = kinds::handle(&of.path).is_some() && search == Search::Aside;
        if is_handle || kinds::holder(&of.path).is_some() && search != Search::Borrowed {
            let kept = Kept {
                value,
                of,
                name: name.clone(),
                is_guessed: false,
            };
            let found = if is_handle {
                &mut found.handles
            } else {
                &mut found.kept
            };
            found.push(kept);
            return;
        }
        if self.is_future(&of) {
            found.futures.push(value);
            return;
        }
        if let Some(table) = of.fields.iter().find(|field| &*field.name == "vtable")
            && let Some(data) = of.fields.iter().find(|field| &*field.name == "pointer")
        {
            let is_followed = match object(&of) {
                Some(Object::Future | Object::Stream) => search != Search::Aside || of.is_box(),
                Some(Object::Body) => search == Search::Sent,
                None => false,
            };
            if is_followed {
                self.trait_object(value, &of, data, table, found);
            }
            return;
        }
        if let Some(number) = tasks_in(self.reading, value, &of)
            && search != Search::Borrowed
        {
            let set = Kept {
                value,
                of: of.clone(),
                name: name.clone(),
                is_guessed: false,
            };
            found.sets.push((set, number));
        }
        if let Some((values, is_cut)) = contained(self.reading, value, &of) {
            if is_cut && matches!(search, Search::Polled | Search::Sent) {
                found.unseen.push(format!(
                    "members of {} beyond the first",
                    names::short(&of.name)
                ));
            }
            for value in values {
                self.search(value, name, search, depth + 1, found);
            }
            return;
        }
        match &of.form {
            Form::Pointer(_) => {
                let search = match (of.is_box(), search) {
                    (true, search) => search,
                    (false, Search::Aside) => return,
                    (false, _) => Search::Borrowed,
                };
                if let Some(target) = self.reading.target(value, &of) {
                    self.search(target, name, search, depth + 1, found);
                }
            }
            _ => {
                for (_, value) in self.reading.fields(value, &of) {
                    self.search(value, name, search, depth + 1, found);
                }
            }
        }
    }

    /// Follows a trait object to the future, stream or body behind it.
    fn trait_object(
        &self,
        value: Value,
        of: &Type,
        data: &Field,
        table: &Field,
        found: &mut Found,
    ) {
        let object = object(of);
        let word = |field: &Field| {
            self.reading
                .memory
                .word(value.address.checked_add(field.offset)?)
        };
        let (Some(address), Some(table)) = (word(data), word(table)) else {
            found
                .unseen
                .push("a boxed future, whose memory cannot be read".to_owned());
            return;
        };
        let behind = self
            .reading
            .types
            .behind(table.wrapping_sub(self.reading.bias));
        match &behind[..] {
            [of] => {
                // An object of another object, such as a boxed box, is followed as well.
                let name: Rc<str> = "".into();
                let value = Value { address, of: *of };
                let behind = self.reading.types.get(*of);
                let is_shown = |of: &Rc<Type>| !is_pointer(of) && kinds::set(&of.path).is_none();
                match (object, behind) {
                    (Some(Object::Body), Some(of)) if is_shown(&of) => found.bodies.push(value),
                    (Some(Object::Stream), Some(of)) if is_shown(&of) => found.futures.push(value),
                    (_, Some(of)) if self.is_future(&of) => found.futures.push(value),
                    _ => self.search(value, &name, Search::Polled, 1, found),
                }
            }
            [] => found
                .unseen
                .push("a boxed future, whose type the debug information does not name".to_owned()),
            several => found.unseen.push(format!(
                "a boxed future of one of {} types, which share one table",
                several.len()
            )),
        }
    }

    /// Returns whether a type is a future that is shown: pointers to futures are futures, too, and are followed instead. The
    /// optimizer may leave no trace of a method `poll`.
    fn is_future(&self, of: &Type) -> bool {
        let is_polled = || self.reading.types.index.is_polled(&of.name);
        !is_pointer(of) && (of.is_coroutine() || is_polled() || kinds::waits(&of.path))
    }

    /// Returns whether values of a type can contain a future or a holder.
    fn matters(&self, at: Place, depth: usize) -> bool {
        if let Some(known) = self.matters.borrow().get(&at) {
            return *known;
        }
        if depth > DEEPEST_TYPES {
            return false;
        }
        // A type that contains itself matters for what else it contains.
        self.matters.borrow_mut().insert(at, false);
        let matters = self
            .reading
            .types
            .get(at)
            .is_some_and(|of| self.type_matters(&of, depth + 1));
        self.matters.borrow_mut().insert(at, matters);
        matters
    }

    fn type_matters(&self, of: &Type, depth: usize) -> bool {
        let is_in_tables = kinds::holder(&of.path).is_some()
            || kinds::handle(&of.path).is_some()
            || kinds::set(&of.path).is_some();
        if is_in_tables || self.is_future(of) {
            return true;
        }
        if of.fields.iter().any(|field| &*field.name == "vtable") {
            return object(of).is_some();
        }
        let mut parts: Vec<Place> = of.fields.iter().map(|field| field.of).collect();
        match &of.form {
            Form::Pointer(Some(target)) if of.is_box() || of.name.starts_with("&mut ") => {
                parts.push(*target);
            }
            Form::Variants { variants, .. } => {
                parts.extend(variants.iter().map(|variant| variant.field.of));
            }
            Form::Pointer(_) | Form::Array { .. } | Form::Plain | Form::Union => {}
        }
        parts.extend(element(self.reading, of));
        parts.into_iter().any(|part| self.matters(part, depth))
    }
}

/// Returns whether a type is a pointer, or one in a wrapper for pinned values.
fn is_pointer(of: &Type) -> bool {
    matches!(&*of.path, "core::pin::Pin" | "alloc::boxed::Box")
        || matches!(of.form, Form::Pointer(_))
}

/// Objects of traits whose owners poll them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    Future,
    Stream,
    Body,
}

/// Returns what a pointer to a trait object leads to, if its owner may poll it.
fn object(of: &Type) -> Option<Object> {
    let (_, name) = of.name.split_once("dyn ")?;
    if name.starts_with(FUTURE) {
        Some(Object::Future)
    } else if name.starts_with(STREAM) {
        Some(Object::Stream)
    } else {
        let is_body = BODIES.iter().any(|body| name.starts_with(body));
        is_body.then_some(Object::Body)
    }
}
