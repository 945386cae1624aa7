//! The runtimes of a process and the tasks in their lists.
//!
//! A thread that is in a runtime has the runtime's handle in a thread-local variable of tokio, and the handle leads to the
//! list of owned tasks. All fields are found by their names.

use std::collections::HashSet;
use std::time::Duration;

use diagnosis::threads::StillThread;

use crate::Error;
use crate::binary::ThreadLocals;
use crate::pass::{Place, ThreadLocal};
use crate::process::Process;
use crate::value::{Reach, Reading, Value};

/// Most tasks that are read, and most of the calling process, which pays for their memory.
const MOST_TASKS: usize = 100_000;
const MOST_TASKS_OF_THIS: usize = 10_000;

/// Most lists of one runtime.
const MOST_LISTS: u64 = 65_536;

/// Most cells around an enum.
const DEEPEST_CELLS: usize = 4;

/// A runtime, by its list of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    owned: Value,
    /// Number of its copy of tokio.
    pub(crate) copy: usize,
    /// Beginning of the times at which tasks are woken, by the system's monotonic clock, if it notes them.
    woken_from: Option<Duration>,
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
    link: Option<Link>,
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
    pub(crate) tid: i32,
    value: Value,
    /// Number of its copy of tokio.
    pub(crate) copy: usize,
    /// Number of the runtime that the thread is in.
    pub(crate) runtime: Option<usize>,
}

/// A thread-local variable in all threads.
struct OfThreads {
    /// True if the standard library keeps nothing around it.
    is_bare: bool,
    values: Vec<(i32, Value)>,
}

/// Returns the values that threads have of thread-local variables of tokio.
///
/// The standard library describes such a variable once for types that need no drop and once for others, and only one of
/// both is used. The one with a state around it comes first.
fn of_threads(
    reading: &Reading<'_, '_, '_>,
    variables: &[ThreadLocal],
    threads: &[StillThread],
) -> Vec<OfThreads> {
    let mut all = Vec::new();
    for variable in variables {
        let of = reading.types.get(variable.type_at);
        let mut values = Vec::new();
        for thread in threads {
            let locals = reading.types.index.binary.thread_locals;
            let address = locals.and_then(|locals| address(locals, *thread, *variable));
            values.extend(address.map(|address| {
                let of = variable.type_at;
                (thread.tid, Value { address, of })
            }));
        }
        all.push(OfThreads {
            is_bare: of.is_some_and(|of| of.path.starts_with("tokio::")),
            values,
        });
    }
    all.sort_by_key(|variable| variable.is_bare);
    all
}

/// Returns the runtimes that threads are in, each once, and the contexts of all threads. If there are copies of tokio in the
/// program, each has contexts of its own.
pub(crate) fn runtimes(
    reading: &Reading<'_, '_, '_>,
    threads: &[StillThread],
) -> Result<(Vec<Runtime>, Vec<Context>), Error> {
    let index = reading.types.index;
    if index.binary.thread_locals.is_none() {
        return Err(Error::NoRuntime("tokio's thread-local variables"));
    }
    let (mut runtimes, mut contexts): (Vec<Runtime>, Vec<Context>) = (Vec::new(), Vec::new());
    let mut missing = None;
    let variables = of_threads(reading, index.contexts(), threads);
    for (copy, variable) in variables.into_iter().enumerate() {
        if variable.is_bare && !runtimes.is_empty() {
            break;
        }
        for (tid, value) in variable.values {
            let shared = shared(reading, value).unwrap_or_else(|error| {
                missing = Some(error);
                None
            });
            let runtime = shared.map(|(shared, owned)| {
                let is_known = |other: &Runtime| other.owned.address == owned.address;
                runtimes.iter().position(is_known).unwrap_or_else(|| {
                    let flavor = flavor(reading, owned);
                    runtimes.push(Runtime {
                        owned,
                        copy,
                        woken_from: woken_from(reading, shared),
                        flavor,
                    });
                    runtimes.len() - 1
                })
            });
            contexts.push(Context {
                tid,
                value,
                copy,
                runtime,
            });
        }
    }
    match missing {
        Some(error) if runtimes.is_empty() => Err(error),
        _ => Ok((runtimes, contexts)),
    }
}

/// Returns what the threads share of the runtime that one of them is in, and its list of tasks.
fn shared(reading: &Reading<'_, '_, '_>, context: Value) -> Result<Option<(Value, Value)>, Error> {
    // In tokio 1.x of before 2023 it is a field of the context itself.
    let handle = reading.find(context, "handle", Reach::WithinValue);
    let handle = handle.ok_or_else(|| no_field(reading, context, "handle", "CONTEXT.handle"))?;
    // A thread that is in no runtime has none.
    let Some(shared) = reading.find(handle, "shared", Reach::ThroughPointers) else {
        return Ok(None);
    };
    let owned = reading.find(shared, "owned", Reach::WithinValue);
    let path = "CONTEXT.current.handle.shared.owned";
    owned
        .map(|owned| Some((shared, owned)))
        .ok_or_else(|| no_field(reading, shared, "owned", path))
}

fn woken_from(reading: &Reading<'_, '_, '_>, shared: Value) -> Option<Duration> {
    let start = reading.find(shared, "schedule_latency_start", Reach::WithinValue)?;
    let number = |name| reading.number(reading.find(start, name, Reach::WithinValue)?);
    Some(
        Duration::from_secs(number("tv_sec")?)
            .saturating_add(Duration::from_nanos(number("tv_nsec")?)),
    )
}

/// Returns for how long a task has been ready at a moment of the system's monotonic clock, if tokio notes it.
pub(crate) fn ready_for(
    reading: &Reading<'_, '_, '_>,
    header: Value,
    runtime: &Runtime,
    at: Duration,
) -> Option<Duration> {
    let woken = reading.find(header, "scheduled_at", Reach::WithinValue)?;
    let woken = reading.number(woken).filter(|woken| *woken != 0)?;
    at.checked_sub(
        runtime
            .woken_from?
            .checked_add(Duration::from_nanos(woken))?,
    )
}

/// Returns the lists of the `LocalSet`s that threads run at the moment.
pub(crate) fn local_sets(
    reading: &Reading<'_, '_, '_>,
    threads: &[StillThread],
) -> Vec<(i32, Value)> {
    let mut sets = Vec::new();
    for variable in of_threads(reading, reading.types.index.local_sets(), threads) {
        if variable.is_bare && !sets.is_empty() {
            break;
        }
        for (tid, value) in variable.values {
            let owned = reading.follow(value, &["ctx", "shared", "owned"]);
            sets.extend(owned.map(|owned| (tid, owned)));
        }
    }
    sets
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

/// Returns which thread polls which task: the task's number, and the thread's context.
pub(crate) fn polled(reading: &Reading<'_, '_, '_>, contexts: &[Context]) -> Vec<(u64, Context)> {
    let mut polled = Vec::new();
    for context in contexts {
        let task = reading.find(context.value, "current_task_id", Reach::WithinValue);
        if let Some(task) = task
            .and_then(|task| reading.number(task))
            .filter(|task| *task != 0)
        {
            polled.push((task, *context));
        }
    }
    polled
}

/// Returns the contexts of threads that may be in `block_on`, each with whether the context says so: threads in a runtime
/// that are no workers of one, and threads that have used tokio and are in none.
pub(crate) fn blocked_on(
    reading: &Reading<'_, '_, '_>,
    contexts: &[Context],
) -> Vec<(Context, bool)> {
    let mut blocked: Vec<(Context, bool)> = Vec::new();
    for context in contexts {
        let find = |name| reading.find(context.value, name, Reach::WithinValue);
        let scheduler = find("scheduler").and_then(|value| reading.pointee(value));
        let is_worker = scheduler.and_then(|value| is_variant(reading, value, "MultiThread"));
        // Versions of before 2023 do not say it.
        let is_entered = find("runtime").and_then(|value| is_variant(reading, value, "Entered"));
        let is_known = || find("thread_id").and_then(|value| is_variant(reading, value, "Some"));
        let may_be = match is_entered {
            Some(is_entered) => is_entered || context.runtime.is_none() && is_known() == Some(true),
            None => context.runtime.is_some(),
        };
        let is_twice = blocked.iter().any(|(other, _)| other.tid == context.tid);
        if may_be && is_worker != Some(true) && !is_twice {
            blocked.push((*context, is_entered == Some(true)));
        }
    }
    blocked
}

/// Returns whether an enum has this variant, also within cells.
fn is_variant(reading: &Reading<'_, '_, '_>, value: Value, name: &str) -> Option<bool> {
    let mut value = value;
    for _ in 0..DEEPEST_CELLS {
        let of = reading.type_of(value)?;
        if let Some(live) = reading.live(value, &of) {
            return Some(&*live.field.name == name);
        }
        value = reading.fields(value, &of).first()?.1;
    }
    None
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
        link: link(reading)?,
        ..Lists::default()
    };
    for (number, runtime) in runtimes.iter().enumerate() {
        for list in shards(reading, runtime.owned) {
            lists.add(reading, list, number)?;
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

impl Lists {
    /// Adds the tasks of a list.
    pub(crate) fn add(
        &mut self,
        reading: &Reading<'_, '_, '_>,
        list: Value,
        runtime: usize,
    ) -> Result<(), Error> {
        // The lock of the standard library, or that of parking_lot.
        let lock = reading
            .find(list, "futex", Reach::WithinValue)
            .or_else(|| reading.find(list, "raw", Reach::WithinValue));
        if lock
            .and_then(|lock| reading.number(lock))
            .is_some_and(|state| state != 0)
        {
            self.is_locked = true;
        }
        let head = reading.find(list, "head", Reach::WithinValue);
        let head =
            head.ok_or_else(|| no_field(reading, list, "head", "OwnedTasks.list.lists[].head"))?;
        let (mut next, mut seen) = (reading.pointee(head), HashSet::new());
        while let Some(header) = next {
            if self.tasks.len() >= self.most {
                self.is_cut = true;
                break;
            }
            if !seen.insert(header.address) {
                break;
            }
            self.tasks.push(Listed { header, runtime });
            next = self.link.and_then(|link| following(reading, header, link));
        }
        Ok(())
    }
}

/// Place of the pointer to the next task of a list, behind a task's future.
#[derive(Clone, Copy, Debug)]
struct Link {
    offset: u64,
    of: Place,
}

/// Returns where tasks have the pointer to the next, or `None` if no task is described.
fn link(reading: &Reading<'_, '_, '_>) -> Result<Option<Link>, Error> {
    let mut link: Option<Link> = None;
    for of in reading.types.index.trailers() {
        // Crates that only pass tasks on may declare the type without its fields.
        let described = reading.types.get(*of);
        if described.is_none_or(|described| described.fields.is_empty()) {
            continue;
        }
        let trailer = Value {
            address: 0,
            of: *of,
        };
        let next = ["owned", "next"].iter().try_fold(trailer, |value, name| {
            let field = reading.find(value, name, Reach::WithinValue);
            field.ok_or_else(|| no_field(reading, value, name, "Trailer.owned.next"))
        })?;
        // Copies of tokio have a type each, and nothing says which is a task's.
        if link.is_some_and(|other| other.offset != next.address) {
            return Err(Error::Copies);
        }
        link = Some(Link {
            offset: next.address,
            of: next.of,
        });
    }
    Ok(link)
}

/// Returns the task after another in its list.
fn following(reading: &Reading<'_, '_, '_>, header: Value, link: Link) -> Option<Value> {
    let trailer = reading.find(
        table(reading, header)?,
        "trailer_offset",
        Reach::WithinValue,
    )?;
    let offset = reading.number(trailer)?.checked_add(link.offset)?;
    let next = reading.pointee(Value {
        address: header.address.checked_add(offset)?,
        of: link.of,
    })?;
    // It is of the same copy.
    Some(Value {
        of: header.of,
        ..next
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
