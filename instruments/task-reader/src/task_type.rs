//! Type of a task, by the functions in its table.
//!
//! Some of these functions are compiled for the task's future, and the debug information names the future. But the compiler
//! and the linker keep only one of several equal functions, which then has one name for all. So a future is only named if
//! it is the one that all functions of the table allow: a function of another name is allowed where this future's own
//! function exists nowhere, since it may have been folded into the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::pass::{Place, TASK_FUNCTIONS, TaskFunction};
use crate::runtime::table;
use crate::types::{Form, Type, Types};
use crate::value::{Reach, Reading, Value};

/// Most values within each other between a task and its future.
const DEEPEST: usize = 16;

/// A future and its scheduler, by their names.
type Pair = (Rc<str>, Rc<str>);

/// Type of a task.
#[derive(Debug)]
pub(crate) enum TaskType {
    /// A future, and the type of the cell around it.
    Future { cell: Place, name: Rc<str> },
    /// Functions were folded: one of these futures.
    Ambiguous(Vec<Rc<str>>),
    /// The debug information does not name its functions.
    Unknown,
}

/// The tasks that the program can have.
#[derive(Debug)]
pub(crate) struct TaskTypes {
    /// Which functions exist for each.
    functions: HashMap<Pair, [bool; TASK_FUNCTIONS.len()]>,
    /// The types of their cells, with their sizes.
    cells: HashMap<Pair, (Place, u64)>,
    /// Types that are known, by their tables' addresses.
    known: RefCell<HashMap<u64, Rc<TaskType>>>,
}

impl TaskTypes {
    pub(crate) fn of(types: &Types<'_, '_>) -> Self {
        let mut functions: HashMap<Pair, [bool; TASK_FUNCTIONS.len()]> = HashMap::new();
        for (address, function) in types.index.all_task_functions() {
            let Some(pair) = pair(types, function) else {
                continue;
            };
            let exist = functions.entry(pair).or_default();
            // Zero is the address of what the linker has thrown out.
            if let Some(exists) = exist.get_mut(function.function).filter(|_| address != 0) {
                *exists = true;
            }
        }
        let (mut cells, mut differing) = (HashMap::<Pair, (Place, u64)>::new(), Vec::new());
        for at in types.index.cells() {
            let Some(of) = types.get(*at) else { continue };
            let name = |number: usize| Some(types.get(of.arguments.get(number)?.1)?.name.clone());
            if let (Some(future), Some(scheduler)) = (name(0), name(1)) {
                let pair = (future, scheduler);
                let first = cells.entry(pair.clone()).or_insert((*at, of.size));
                // Copies of tokio have different cells of one name.
                if first.1 != of.size {
                    differing.push(pair);
                }
            }
        }
        cells.retain(|pair, _| !differing.contains(pair));
        Self {
            functions,
            cells,
            known: RefCell::default(),
        }
    }

    /// Returns what the task with this header is.
    pub(crate) fn of_task(&self, reading: &Reading<'_, '_, '_>, header: Value) -> Rc<TaskType> {
        let Some(table) = table(reading, header) else {
            return Rc::new(TaskType::Unknown);
        };
        if let Some(known) = self.known.borrow().get(&table.address) {
            return known.clone();
        }
        let found = self.of_table(reading, table).map(Rc::new);
        match found {
            Some(found) => {
                self.known.borrow_mut().insert(table.address, found.clone());
                found
            }
            // Its memory was not copied.
            None => Rc::new(TaskType::Unknown),
        }
    }

    fn of_table(&self, reading: &Reading<'_, '_, '_>, table: Value) -> Option<TaskType> {
        let mut by_function: Vec<(usize, Vec<Pair>)> = Vec::new();
        for (number, name) in TASK_FUNCTIONS.iter().enumerate() {
            let Some(field) = reading.find(table, name, Reach::WithinValue) else {
                continue;
            };
            let address = reading
                .memory
                .word(field.address)?
                .wrapping_sub(reading.bias);
            let named = reading.types.index.task_functions(address).iter();
            by_function.push((
                number,
                named
                    .filter_map(|function| pair(reading.types, function))
                    .collect(),
            ));
        }
        let mut candidates: Vec<&Pair> = Vec::new();
        for pair in by_function.iter().flat_map(|(_, pairs)| pairs) {
            if !candidates.contains(&pair)
                && by_function
                    .iter()
                    .all(|(number, named)| self.allows(pair, *number, named))
            {
                candidates.push(pair);
            }
        }
        let mut names: Vec<Rc<str>> = candidates
            .iter()
            .map(|(future, _)| future.clone())
            .collect();
        if let Some(first) = candidates.first() {
            names.extend(self.folded_away(first));
        }
        names.sort_unstable();
        names.dedup();
        let cell = candidates.first().and_then(|pair| self.cells.get(pair));
        Some(match (&names[..], cell) {
            ([name], Some((cell, _))) => TaskType::Future {
                cell: *cell,
                name: name.clone(),
            },
            ([] | [_], _) => TaskType::Unknown,
            _ => TaskType::Ambiguous(names),
        })
    }

    /// Returns whether a task can be this one, if a function of its table has these names.
    fn allows(&self, pair: &Pair, function: usize, named: &[Pair]) -> bool {
        let exists = self
            .functions
            .get(pair)
            .and_then(|exist| exist.get(function));
        named.is_empty() || named.contains(pair) || exists != Some(&true)
    }

    /// Returns the futures none of whose functions is described, and whose tasks are as large as this one.
    fn folded_away(&self, pair: &Pair) -> Vec<Rc<str>> {
        let size = self.cells.get(pair).map(|(_, size)| *size);
        let mut folded = Vec::new();
        for (other, (_, other_size)) in &self.cells {
            if other.1 == pair.1 && Some(*other_size) == size && !self.functions.contains_key(other)
            {
                folded.push(other.0.clone());
            }
        }
        folded
    }
}

fn pair(types: &Types<'_, '_>, function: &TaskFunction) -> Option<Pair> {
    let name = |at: Place| types.get(at).map(|of| of.name.clone());
    Some((name(function.future)?, name(function.scheduler)?))
}

/// Returns the future of a task that is not over.
pub(crate) fn future(reading: &Reading<'_, '_, '_>, cell: Value) -> Option<Value> {
    let (running, of) = stage(reading, cell)?;
    if !of.path.ends_with("::Running") {
        return None;
    }
    let fields = reading.fields(running, &of);
    fields.first().map(|(_, future)| *future)
}

/// Returns whether a task is over, and its result was not taken.
pub(crate) fn has_result(reading: &Reading<'_, '_, '_>, cell: Value) -> bool {
    stage(reading, cell).is_some_and(|(_, of)| of.path.ends_with("::Finished"))
}

/// Returns the live variant of a task's stage.
fn stage(reading: &Reading<'_, '_, '_>, cell: Value) -> Option<(Value, Rc<Type>)> {
    let mut value = reading.find(cell, "stage", Reach::WithinValue)?;
    // Through the cells around it to the stage itself.
    for _ in 0..4 {
        let of = reading.type_of(value)?;
        if let Form::Variants { .. } = of.form {
            let field = &reading.live(value, &of)?.field;
            let live = Value {
                address: value.address.checked_add(field.offset)?,
                of: field.of,
            };
            return Some((live, reading.type_of(live)?));
        }
        value = reading.fields(value, &of).first()?.1;
    }
    None
}

/// Returns the values within a task's cell that the future is in, the innermost first.
pub(crate) fn around(reading: &Reading<'_, '_, '_>, cell: Value, future: Value) -> Vec<Value> {
    let (mut around, mut value) = (Vec::new(), cell);
    while value != future && around.len() < DEEPEST {
        around.push(value);
        let inner = reading.type_of(value).and_then(|of| {
            let fields = reading.fields(value, &of).into_iter();
            let mut holds = fields.filter(|(_, field)| {
                let size = reading.type_of(*field).map_or(0, |of| of.size_or_pointer());
                let end = field.address.saturating_add(size);
                *field == future || (field.address..end).contains(&future.address)
            });
            holds.next().map(|(_, field)| field)
        });
        let Some(inner) = inner else { break };
        value = inner;
    }
    around.reverse();
    around
}

/// Returns the function that drops a task, and its argument.
pub(crate) fn deallocates(reading: &Reading<'_, '_, '_>, header: Value) -> Option<(u64, u64)> {
    let function = reading.find(table(reading, header)?, "dealloc", Reach::WithinValue)?;
    Some((reading.memory.word(function.address)?, header.address))
}
