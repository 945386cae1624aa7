//! The runtimes of a process and the tasks in their lists.
//!
//! A thread that is in a runtime has the runtime's handle in a thread-local variable of tokio, and the handle leads to the
//! list of owned tasks. All fields are found by their names.

use std::collections::HashSet;

use diagnosis::threads::StillThread;

use crate::Error;
use crate::binary::ThreadLocals;
use crate::pass::ThreadLocal;
use crate::process::Process;
use crate::value::{Reach, Reading, Value};

/// Most tasks that are read, and most of the calling process, which pays for their memory.
const MOST_TASKS: usize = 100_000;
const MOST_TASKS_OF_THIS: usize = 10_000;

/// Most lists of one runtime.
const MOST_LISTS: u64 = 65_536;

/// A runtime, by its list of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    owned: Value,
    pub(crate) flavor: Flavor,
}

/// Kind of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Flavor {
    /// All tasks on the thread that called `block_on`.
    CurrentThread,
    /// Tasks on several worker threads.
    MultiThread,
    /// A kind that this version does not know.
    Other,
}

/// A task as its list has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) header: Value,
    /// Number of its runtime.
    pub(crate) runtime: usize,
}

/// Tasks of all runtimes.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) tasks: Vec<Listed>,
    /// Most tasks that are listed.
    pub(crate) most: usize,
    /// There are more.
    pub(crate) is_cut: bool,
    /// A list was being changed.
    pub(crate) is_locked: bool,
}

/// Tokio's context of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    tid: i32,
    value: Value,
}

/// Returns the contexts of threads, in a list for each variable that may be them.
///
/// The standard library describes a thread-local variable once for types that need no drop and once for others, and only
/// one of both is used. The one with a state around it comes first.
fn contexts(
    reading: &Reading<'_, '_, '_>,
    threads: &[StillThread],
) -> Result<Vec<Vec<Context>>, Error> {
    let index = reading.types.index;
    let Some(locals) = index.binary.thread_locals else {
        return Err(Error::NoRuntime("tokio's thread-local variables"));
    };
    let mut variables: Vec<ThreadLocal> = index.contexts().to_vec();
    let is_bare = |variable: &ThreadLocal| {
        reading
            .types
            .get(variable.type_at)
            .is_some_and(|of| of.path.starts_with("tokio::"))
    };
    variables.sort_by_key(is_bare);
    let mut contexts = Vec::new();
    for variable in variables {
        let mut of_variable = Vec::new();
        for thread in threads {
            if let Some(address) = address(locals, *thread, variable) {
                let value = Value {
                    address,
                    of: variable.type_at,
                };
                of_variable.push(Context {
                    tid: thread.tid,
                    value,
                });
            }
        }
        contexts.push(of_variable);
    }
    Ok(contexts)
}

/// Returns the runtimes that threads are in, each once, and the contexts of all threads.
pub(crate) fn runtimes(
    reading: &Reading<'_, '_, '_>,
    threads: &[StillThread],
) -> Result<(Vec<Runtime>, Vec<Context>), Error> {
    let mut missing = None;
    for contexts in contexts(reading, threads)? {
        let mut runtimes: Vec<Runtime> = Vec::new();
        for context in &contexts {
            // In tokio 1.x of before 2023 it is a field of the context itself.
            let Some(handle) = reading.find(context.value, "handle", Reach::WithinValue) else {
                missing = Some(no_field(reading, context.value, "handle", "CONTEXT.handle"));
                continue;
            };
            // A thread that is in no runtime has none.
            let Some(shared) = reading.find(handle, "shared", Reach::ThroughPointers) else {
                continue;
            };
            let Some(owned) = reading.find(shared, "owned", Reach::WithinValue) else {
                missing = Some(no_field(
                    reading,
                    shared,
                    "owned",
                    "CONTEXT.current.handle.shared.owned",
                ));
                continue;
            };
            if !runtimes
                .iter()
                .any(|other| other.owned.address == owned.address)
            {
                runtimes.push(Runtime {
                    owned,
                    flavor: flavor(reading, owned),
                });
            }
        }
        if !runtimes.is_empty() {
            return Ok((runtimes, contexts));
        }
    }
    missing.map_or(Ok((Vec::new(), Vec::new())), Err)
}

fn flavor(reading: &Reading<'_, '_, '_>, owned: Value) -> Flavor {
    let name = reading
        .type_of(owned)
        .map(|of| of.name.clone())
        .unwrap_or_default();
    if name.contains("multi_thread") {
        Flavor::MultiThread
    } else if name.contains("current_thread") {
        Flavor::CurrentThread
    } else {
        Flavor::Other
    }
}

/// Returns which thread polls which task: the task's number, and the thread's.
pub(crate) fn polled(reading: &Reading<'_, '_, '_>, contexts: &[Context]) -> Vec<(u64, i32)> {
    let mut polled = Vec::new();
    for context in contexts {
        let task = reading.find(context.value, "current_task_id", Reach::WithinValue);
        if let Some(task) = task
            .and_then(|task| reading.number(task))
            .filter(|task| *task != 0)
        {
            polled.push((task, context.tid));
        }
    }
    polled
}

/// Returns the address of a thread's copy of a variable, by the layout of the program's own variables: below the thread's
/// pointer on x86-64, above it on aarch64.
fn address(locals: ThreadLocals, thread: StillThread, local: ThreadLocal) -> Option<u64> {
    let alignment = locals.alignment.max(1);
    if local.offset >= locals.size {
        return None;
    }
    if cfg!(target_arch = "x86_64") {
        let size = locals.size.checked_next_multiple_of(alignment)?;
        thread.pointer.checked_sub(size)?.checked_add(local.offset)
    } else {
        let start = 16_u64.checked_next_multiple_of(alignment)?;
        thread.pointer.checked_add(start)?.checked_add(local.offset)
    }
}

/// Returns the tasks of all runtimes.
pub(crate) fn tasks(
    reading: &Reading<'_, '_, '_>,
    runtimes: &[Runtime],
    process: Process,
) -> Result<Lists, Error> {
    let mut lists = Lists {
        most: if process.is_this() {
            MOST_TASKS_OF_THIS
        } else {
            MOST_TASKS
        },
        ..Lists::default()
    };
    for (number, runtime) in runtimes.iter().enumerate() {
        for list in shards(reading, runtime.owned) {
            list_tasks(reading, list, number, &mut lists)?;
        }
    }
    Ok(lists)
}

/// Returns the parts of a list, each behind a lock of its own; the whole list where it has no parts.
fn shards(reading: &Reading<'_, '_, '_>, owned: Value) -> Vec<Value> {
    let parts = || {
        let lists = reading.find(owned, "lists", Reach::WithinValue)?;
        let data = reading.find(lists, "data_ptr", Reach::WithinValue)?;
        let length = reading.number(reading.find(lists, "length", Reach::WithinValue)?)?;
        let first = reading.pointee(data)?;
        let size = reading.type_of(first)?.size;
        let mut parts = Vec::new();
        for number in 0..length.min(MOST_LISTS) {
            let address = first.address.checked_add(number.checked_mul(size)?)?;
            parts.push(Value {
                address,
                of: first.of,
            });
        }
        Some(parts)
    };
    parts().unwrap_or_else(|| vec![owned])
}

fn list_tasks(
    reading: &Reading<'_, '_, '_>,
    list: Value,
    runtime: usize,
    lists: &mut Lists,
) -> Result<(), Error> {
    // The lock of the standard library, or that of parking_lot.
    let lock = reading
        .find(list, "futex", Reach::WithinValue)
        .or_else(|| reading.find(list, "raw", Reach::WithinValue));
    if lock
        .and_then(|lock| reading.number(lock))
        .is_some_and(|state| state != 0)
    {
        lists.is_locked = true;
    }
    let head = reading.find(list, "head", Reach::WithinValue);
    let head =
        head.ok_or_else(|| no_field(reading, list, "head", "OwnedTasks.list.lists[].head"))?;
    let (mut next, mut seen) = (reading.pointee(head), HashSet::new());
    while let Some(header) = next {
        if lists.tasks.len() >= lists.most {
            lists.is_cut = true;
            break;
        }
        if !seen.insert(header.address) {
            break;
        }
        lists.tasks.push(Listed { header, runtime });
        next = following(reading, header)?;
    }
    Ok(())
}

/// Returns the task after another in its list.
fn following(reading: &Reading<'_, '_, '_>, header: Value) -> Result<Option<Value>, Error> {
    let Some(trailer) = trailer(reading, header) else {
        return Ok(None);
    };
    let path = "Trailer.owned.next";
    let owned = reading
        .find(trailer, "owned", Reach::WithinValue)
        .ok_or_else(|| no_field(reading, trailer, "owned", path))?;
    let next = reading
        .find(owned, "next", Reach::WithinValue)
        .ok_or_else(|| no_field(reading, owned, "next", path))?;
    Ok(reading.pointee(next))
}

/// Returns what lies behind a task's future.
fn trailer(reading: &Reading<'_, '_, '_>, header: Value) -> Option<Value> {
    let table = table(reading, header)?;
    let offset = reading.number(reading.find(table, "trailer_offset", Reach::WithinValue)?)?;
    let of = *reading.types.index.trailers().first()?;
    Some(Value {
        address: header.address.checked_add(offset)?,
        of,
    })
}

/// Returns a task's table of functions.
pub(crate) fn table(reading: &Reading<'_, '_, '_>, header: Value) -> Option<Value> {
    reading.pointee(reading.find(header, "vtable", Reach::WithinValue)?)
}

/// Returns tokio's number of a task.
pub(crate) fn id(reading: &Reading<'_, '_, '_>, header: Value) -> Option<u64> {
    let offset = reading.find(table(reading, header)?, "id_offset", Reach::WithinValue)?;
    reading
        .memory
        .word(header.address.checked_add(reading.number(offset)?)?)
}

fn no_field(reading: &Reading<'_, '_, '_>, value: Value, field: &str, path: &str) -> Error {
    Error::NoField {
        type_name: reading
            .type_of(value)
            .map(|of| of.name.to_string())
            .unwrap_or_default(),
        field: field.to_owned(),
        path: path.to_owned(),
    }
}
