//! Whether a value is alive: whether its future would drop it now.
//!
//! The compiler keeps the place of a value that was moved or dropped, and the debug information does not say which values
//! are alive in a state. The machine code does: for each `async fn` and block, the compiler writes a function that drops
//! it in any of its states, and that function follows a value's pointers only if the value is alive. So this code is run on a machine that
//! changes nothing (`machine`), with the copied memory of the task.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ops::Range;

use crate::machine::{Code, Machine, Question};
use crate::model::Task;
use crate::pass::hash;
use crate::value::{Reading, Value};

/// Most values that are asked for in one walk: of those that hold what tasks wait for, and of all others.
const MOST_QUESTIONS: u32 = 20_000;

/// Answers for the values of one snapshot.
#[derive(Default)]
pub(crate) struct Drops {
    machine: RefCell<Machine>,
    /// Addresses of what tasks waited for in the walk before; none in the first walk.
    wanted: RefCell<Option<HashSet<u64>>>,
    asked: Cell<u32>,
    asked_for_others: Cell<u32>,
}

impl Drops {
    /// Begins another walk, which asks for all of its values anew. `before` are the tasks of the walk before.
    pub(crate) fn begin(&self, before: &[Task]) {
        let waits = before.iter().flat_map(|task| &task.waits);
        let wanted = waits.filter_map(|wait| wait.address).collect();
        self.wanted.replace(Some(wanted));
        self.asked.set(0);
        self.asked_for_others.set(0);
    }

    /// Returns whether tasks wait for what lies at `resource`, as far as that is known.
    pub(crate) fn may_be_wanted(&self, resource: u64) -> bool {
        let wanted = self.wanted.borrow();
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted.contains(&resource))
    }

    /// Returns whether `value`, which may hold what lies at `resource`, is dropped with its owners, or `None` if that cannot be
    /// found out. Each owner keeps the one before; `kept` are other values on the way. `last` is the function that drops the
    /// whole task, and its argument.
    pub(crate) fn is_dropped(
        &self,
        reading: &Reading<'_, '_, '_>,
        (value, resource): (Value, u64),
        owners: &[Value],
        kept: &[Value],
        last: Option<(u64, u64)>,
    ) -> Option<bool> {
        let glue = |owner: &Value| {
            let name = reading.type_of(*owner)?.name.clone();
            let address = reading
                .types
                .index
                .drops()
                .glue
                .get(&hash(name.as_bytes()))?;
            Some((address.wrapping_add(reading.bias), owner.address))
        };
        let range = |value: &Value| reading.range(*value);
        let mut known: Vec<Range<u64>> = Vec::new();
        known.extend(owners.iter().filter_map(range));
        known.extend(kept.iter().filter_map(range));
        known.extend(range(&value));
        // A walk over a running process only finds out what to copy.
        let mut is_known = true;
        for range in &known {
            is_known &= reading.memory.ask(range);
        }
        if !is_known {
            return None;
        }
        let (entry, argument) = owners.iter().find_map(glue).or(last)?;
        // A large service has more values than can be asked for, and those that nobody waits for shall not take the place of
        // the others.
        let asked = if self.may_be_wanted(resource) {
            &self.asked
        } else {
            &self.asked_for_others
        };
        asked.set(asked.get().saturating_add(1));
        if asked.get() > MOST_QUESTIONS {
            return None;
        }
        let question = Question {
            memory: reading.memory,
            code: Code {
                functions: reading.types.index.drops(),
                bias: reading.bias,
                image: &reading.types.index.binary.image,
            },
            known: &known,
            wanted: range(&value)?,
        };
        self.machine.borrow_mut().uses(&question, entry, argument)
    }
}
