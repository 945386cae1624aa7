//! Futures that `block_on` polls.
//!
//! Such a future is in no list: it lies on the stack of the thread that waits for it. So the stack is followed to a function
//! called `block_on`, whose description says where its variables are at this moment. One of them is the pinned future.

use std::collections::HashMap;

use diagnosis::threads::{Call, StillThread};
use gimli::{AttributeValue, EvaluationResult, Expression, Location, Register, constants as dw};

use crate::calls::{Calls, Function, frames};
use crate::index::Index;
use crate::model::Frame;
use crate::names;
use crate::pass::{Bytes, Place};
use crate::types::Form;
use crate::value::{Reading, Value};

/// Name of the functions that poll a future on their own thread.
const BLOCK_ON: &str = "block_on";

/// Crates whose functions between `block_on` and the end of a stack are no part of the future.
const PLAIN: [&str; 6] = [
    "alloc",
    "core",
    "futures_executor",
    "pollster",
    "std",
    "tokio",
];

/// Path of the type of a pinned reference.
const PIN: &str = "core::pin::Pin";

/// Most bytes of a stack between a call and the future that it has pinned.
const FARTHEST: u64 = 64 << 20;

/// Most descriptions of one unit that are read.
const MOST_ENTRIES: usize = 1 << 24;

/// Most operations of a description of a place.
const MOST_OPERATIONS: u32 = 100;

/// Most references from a copy of a function to its name.
const MOST_ORIGINS: usize = 4;

/// Numbers of registers in debug information.
#[cfg(target_arch = "x86_64")]
const FRAME: Register = Register(6);
#[cfg(target_arch = "x86_64")]
const STACK: Register = Register(7);
#[cfg(target_arch = "aarch64")]
const FRAME: Register = Register(29);
#[cfg(target_arch = "aarch64")]
const STACK: Register = Register(31);

/// A future that `block_on` polls.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) tid: i32,
    pub(crate) future: Value,
    /// Functions within it, if the thread polls it at this moment.
    pub(crate) polled: Option<Vec<Frame>>,
}

/// Findings on the stack of a thread.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) futures: Vec<Blocked>,
    /// Number of calls of `block_on` of whose futures nothing says where they lie.
    pub(crate) unseen: usize,
}

/// A variable of a `block_on`.
#[derive(Debug)]
struct Variable<'a> {
    of: Place,
    unit: Place,
    location: AttributeValue<Bytes<'a>>,
    /// Base of the function's variables.
    base: Option<Expression<Bytes<'a>>>,
    is_argument: bool,
}

/// Variables of the functions called `block_on`, by the addresses at which threads are in them.
#[derive(Debug, Default)]
pub(crate) struct BlockOns<'a>(HashMap<u64, Option<Vec<Variable<'a>>>>);

/// Meaning of a function on the stack for a future around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BlockOn,
    /// It polls a future, or is a part of one.
    Polls,
    /// It runs while no poll of the future goes on.
    Parks,
    Other,
}

impl<'a> BlockOns<'a> {
    /// Returns the futures for which a thread waits.
    pub(crate) fn of_thread(
        &mut self,
        reading: &Reading<'_, '_, 'a>,
        calls: &mut Calls<'a>,
        thread: &StillThread,
    ) -> Found {
        let (mut found, mut within) = (Found::default(), Vec::new());
        // Of the functions since the last future: what the thread does with the next one, and whether that was found.
        let (mut step, mut is_found) = (Step::Other, None);
        let stack = calls.stack(reading.memory, thread);
        for (number, call) in stack.iter().enumerate() {
            let linked = call.address.wrapping_sub(reading.bias);
            for function in calls.functions(linked) {
                match Step::of(&function.name) {
                    Step::BlockOn if is_found != Some(true) => {
                        let moment = Moment {
                            reading,
                            linked,
                            call: *call,
                            around: stack.get(number + 1).map(|call| call.stack),
                        };
                        // A closure in it has no such variables.
                        let Some(variables) = self.variables(calls, &moment) else {
                            within.push(function);
                            continue;
                        };
                        let future = moment.future(variables);
                        is_found = Some(future.is_some());
                        found.futures.extend(future.map(|future| Blocked {
                            tid: thread.tid,
                            future,
                            polled: (step == Step::Polls).then(|| polled(&within)),
                        }));
                    }
                    // Further out may be another `block_on`, which polls the future of which this function is a part.
                    Step::Polls => {
                        found.unseen += usize::from(is_found == Some(false));
                        (step, is_found) = (Step::Polls, None);
                    }
                    Step::Parks => step = Step::Parks,
                    Step::BlockOn | Step::Other => {}
                }
                within.push(function);
            }
        }
        found.unseen += usize::from(is_found == Some(false));
        found
    }

    /// Returns the variables of the `block_on` in which a call is, or `None` if it is in no such function.
    fn variables(
        &mut self,
        calls: &Calls<'a>,
        moment: &Moment<'_, '_, '_, 'a>,
    ) -> Option<&[Variable<'a>]> {
        let (index, linked) = (moment.reading.types.index, moment.linked);
        let variables = self.0.entry(linked).or_insert_with(|| {
            let unit = calls.unit(linked);
            unit.and_then(|unit| variables(index, unit, linked))
        });
        variables.as_deref()
    }
}

impl Step {
    fn of(name: &str) -> Self {
        match names::last(name) {
            BLOCK_ON => Self::BlockOn,
            "poll" | "budget" => Self::Polls,
            _ if !is_plain(name) => Self::Polls,
            last if last.starts_with("park") || last == "run_task" => Self::Parks,
            _ => Self::Other,
        }
    }
}

/// Returns whether a function is of no crate, such as one of C, or of one that runs futures.
fn is_plain(name: &str) -> bool {
    let name = name.trim_start_matches(['<', '&']);
    name.split_once("::")
        .is_none_or(|(of_crate, _)| PLAIN.contains(&of_crate))
}

/// Returns the functions within a future that is polled, from those on its stack.
fn polled(within: &[Function]) -> Vec<Frame> {
    let own = within
        .iter()
        .rposition(|function| !is_plain(&function.name));
    let within = own.and_then(|own| within.get(..=own)).unwrap_or(within);
    frames(within.to_vec())
}

/// A call at a moment, by which variables have places.
struct Moment<'m, 'r, 'i, 'a> {
    reading: &'m Reading<'r, 'i, 'a>,
    /// Address in the function as linked.
    linked: u64,
    call: Call,
    /// Stack pointer of the caller.
    around: Option<u64>,
}

impl<'a> Moment<'_, '_, '_, 'a> {
    /// Returns the future that a `block_on` with these variables has pinned.
    fn future(&self, variables: &[Variable<'a>]) -> Option<Value> {
        // A future is moved into the variable that is pinned, and older places of it stay on the stack.
        let mut pinned = variables.iter().filter_map(|one| self.pinned(one));
        let mut own = variables.iter().filter_map(|one| self.own(one));
        pinned.next().or_else(|| own.next())
    }

    /// Returns where a variable leads that is a pinned reference.
    fn pinned(&self, variable: &Variable<'a>) -> Option<Value> {
        let types = self.reading.types;
        let pin = types.get(variable.of)?;
        let pointer = types.get(pin.fields.first()?.of)?;
        let Form::Pointer(Some(of)) = pointer.form else {
            return None;
        };
        if &*pin.path != PIN || !pointer.name.starts_with("&mut ") {
            return None;
        }
        let address = match self.location(variable)? {
            Location::Address { address } => self.reading.memory.word(address)?,
            Location::Value { value } => value.to_u64(u64::MAX).ok()?,
            Location::Register { register } => self.register(register)?,
            _ => return None,
        };
        self.near(Value { address, of })
    }

    /// Returns a variable that is a future itself. An argument was moved before it was pinned.
    fn own(&self, variable: &Variable<'a>) -> Option<Value> {
        let types = self.reading.types;
        let of = types.get(variable.of)?;
        let is_future = of.is_coroutine() || types.index.is_polled(&of.name) || &*of.path == PIN;
        if variable.is_argument || !is_future {
            return None;
        }
        match self.location(variable)? {
            Location::Address { address } => self.near(Value {
                address,
                of: variable.of,
            }),
            _ => None,
        }
    }

    /// Returns a value if it lies on the stack, further out than the call.
    fn near(&self, value: Value) -> Option<Value> {
        let stack = self.call.stack..self.call.stack.saturating_add(FARTHEST);
        stack.contains(&value.address).then_some(value)
    }

    fn location(&self, variable: &Variable<'a>) -> Option<Location<Bytes<'a>>> {
        let index = self.reading.types.index;
        let unit = index.unit(variable.unit)?;
        if let AttributeValue::Exprloc(expression) = variable.location {
            return self.evaluate(variable, expression, true);
        }
        let mut places = index
            .dwarf
            .attr_locations(&unit, variable.location)
            .ok()??;
        while let Ok(Some(place)) = places.next() {
            if (place.range.begin..place.range.end).contains(&self.linked) {
                return self.evaluate(variable, place.data, true);
            }
        }
        None
    }

    fn evaluate(
        &self,
        variable: &Variable<'a>,
        expression: Expression<Bytes<'a>>,
        may_use_base: bool,
    ) -> Option<Location<Bytes<'a>>> {
        let unit = self.reading.types.index.unit(variable.unit)?;
        let mut evaluation = expression.evaluation(unit.encoding());
        evaluation.set_max_iterations(MOST_OPERATIONS);
        let mut result = evaluation.evaluate();
        for _ in 0..MOST_OPERATIONS {
            result = match result.ok()? {
                EvaluationResult::Complete => {
                    return match evaluation.as_result() {
                        [piece] if piece.size_in_bits.is_none() => Some(piece.location),
                        _ => None,
                    };
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = gimli::Value::Generic(self.register(register)?);
                    evaluation.resume_with_register(value)
                }
                EvaluationResult::RequiresFrameBase if may_use_base => {
                    let base = match self.evaluate(variable, variable.base?, false)? {
                        Location::Register { register } => self.register(register)?,
                        Location::Address { address } => address,
                        _ => return None,
                    };
                    evaluation.resume_with_frame_base(base)
                }
                EvaluationResult::RequiresCallFrameCfa => {
                    evaluation.resume_with_call_frame_cfa(self.around?)
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = self.reading.memory.number(address, size.into())?;
                    let value = gimli::Value::Generic(u64::try_from(value).ok()?);
                    evaluation.resume_with_memory(value)
                }
                _ => return None,
            };
        }
        None
    }

    /// Returns what a register had when the function made its call: those that are known are the same in all functions.
    fn register(&self, register: Register) -> Option<u64> {
        match register {
            FRAME => Some(self.call.frame),
            STACK => Some(self.call.stack),
            _ => None,
        }
    }
}

/// A function or block around an address.
struct Around {
    depth: isize,
    /// True if it is called `block_on`; none for a block.
    is_block_on: Option<bool>,
}

/// Returns the variables of all functions called `block_on` that are compiled into the code at an address, those of the
/// innermost function first; `None` if there is no such function.
fn variables<'a>(index: &Index<'a>, unit: Place, linked: u64) -> Option<Vec<Variable<'a>>> {
    let at = unit;
    let unit = index.unit(unit)?;
    let mut entries = unit.entries_raw(None).ok()?;
    let (mut around, mut base): (Vec<Around>, _) = (Vec::new(), None);
    let mut variables: Vec<(isize, Variable<'a>)> = Vec::new();
    // Depth of an entry that does not hold the address: nothing within it does.
    let mut outside: Option<isize> = None;
    let mut is_any = false;
    for _ in 0..MOST_ENTRIES {
        if entries.is_empty() {
            break;
        }
        let (depth, offset) = (entries.next_depth(), entries.next_offset());
        let Some(abbreviation) = entries.read_abbreviation().ok()? else {
            continue;
        };
        entries.skip_attributes(abbreviation.attributes()).ok()?;
        if outside.is_some_and(|outside| depth > outside) {
            continue;
        }
        outside = None;
        if around
            .first()
            .is_some_and(|outermost| depth <= outermost.depth)
        {
            break;
        }
        while around.pop_if(|inner| inner.depth >= depth).is_some() {}
        let tag = abbreviation.tag();
        let is_argument = tag == dw::DW_TAG_formal_parameter;
        if matches!(
            tag,
            dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_lexical_block
        ) {
            let entry = unit.entry(offset).ok()?;
            let mut ranges = index.dwarf.die_ranges(&unit, &entry).ok()?;
            let mut is_within = false;
            while let Ok(Some(range)) = ranges.next() {
                is_within |= (range.begin..range.end).contains(&linked);
            }
            if !is_within {
                outside = Some(depth);
                continue;
            }
            if around.is_empty() {
                let expression = entry.attr_value(dw::DW_AT_frame_base);
                base = expression.and_then(|expression| expression.exprloc_value());
            }
            let gimli::UnitSectionOffset(place) = offset.to_unit_section_offset(&unit.header);
            let is_function = tag != dw::DW_TAG_lexical_block;
            let is_block_on = is_function.then(|| is_block_on(index, place).unwrap_or_default());
            is_any |= is_block_on == Some(true);
            around.push(Around { depth, is_block_on });
        } else if tag == dw::DW_TAG_variable || is_argument {
            let mut functions = around.iter().rev();
            let function = functions.find(|around| around.is_block_on.is_some());
            let Some(function) = function.filter(|function| function.is_block_on == Some(true))
            else {
                continue;
            };
            let entry = unit.entry(offset).ok()?;
            let gimli::UnitSectionOffset(place) = offset.to_unit_section_offset(&unit.header);
            if let (Some(of), Some(location)) =
                (type_of(index, place), entry.attr_value(dw::DW_AT_location))
            {
                let variable = Variable {
                    of,
                    unit: at,
                    location,
                    base,
                    is_argument,
                };
                variables.push((function.depth, variable));
            }
        }
    }
    variables.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    let variables = variables.into_iter().map(|(_, variable)| variable);
    is_any.then(|| variables.collect())
}

/// Returns whether a function, or a copy of one, is called `block_on`.
fn is_block_on(index: &Index<'_>, function: Place) -> Option<bool> {
    let mut at = function;
    for _ in 0..MOST_ORIGINS {
        if let Some(name) = index.own_name(at) {
            return Some(name.split(|byte| *byte == b'<').next() == Some(BLOCK_ON.as_bytes()));
        }
        at = index.origin(at)?;
    }
    None
}

/// Returns the type of a variable, or of one in a copy of a function.
fn type_of(index: &Index<'_>, variable: Place) -> Option<Place> {
    let mut at = variable;
    for _ in 0..MOST_ORIGINS {
        if let Some(of) = index.reference(at, dw::DW_AT_type) {
            return Some(of);
        }
        at = index.origin(at)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_a_thread_and_its_future_is_told_by_names() {
        for (name, step) in [
            (
                "tokio::runtime::park::CachedParkThread::block_on",
                Step::BlockOn,
            ),
            (
                "<tokio::runtime::park::CachedParkThread>::block_on::<shop::main::{closure#0}>",
                Step::BlockOn,
            ),
            ("tokio::runtime::park::CachedParkThread::park", Step::Parks),
            (
                "tokio::runtime::scheduler::current_thread::Context::run_task",
                Step::Parks,
            ),
            ("tokio::task::coop::budget", Step::Polls),
            (
                "<core::pin::Pin<P> as core::future::future::Future>::poll",
                Step::Polls,
            ),
            ("shop::main", Step::Polls),
            ("shop::park", Step::Polls),
            ("core::ops::function::FnOnce::call_once", Step::Other),
            ("epoll_wait", Step::Other),
        ] {
            assert_eq!(Step::of(name), step, "{name}");
        }
    }
}
