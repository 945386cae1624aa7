//! Takes snapshots of processes.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::Error;
use crate::blocked::{BlockOns, Found};
use crate::calls::Calls;
use crate::drops::Drops;
use crate::graph;
use crate::index::Index;
use crate::memory::Memory;
use crate::model::{Snapshot, Standstill, State, Task};
use crate::process::Process;
use crate::runtime::{self, Context, Listed, Lists, Runtime};
use crate::shadowed::Bodies;
use crate::sockets;
use crate::task_type::TaskTypes;
use crate::tell;
use crate::types::Types;
use crate::value::{Reading, Value};
use crate::walk::Walker;

/// Most threads in `block_on` whose stacks are read.
const MOST_STACKS: usize = 64;

/// Most stops of a snapshot: a list may be locked at one moment, and memory may come into question that was not copied.
const MOST_STOPS: u32 = 5;

/// Reads the tasks of processes that run one program. What it has learnt of types serves later snapshots.
pub struct Reader<'i, 'a> {
    types: Types<'i, 'a>,
    task_types: TaskTypes,
    bodies: Bodies,
    /// Calls of the process that was read last.
    calls: RefCell<Option<Calls<'a>>>,
    block_ons: RefCell<BlockOns<'a>>,
}

impl std::fmt::Debug for Reader<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("index", self.types.index)
            .finish_non_exhaustive()
    }
}

impl<'i, 'a> Reader<'i, 'a> {
    /// Makes a reader for processes of the program with this index.
    pub fn new(index: &'i Index<'a>) -> Self {
        let types = Types::new(index);
        let task_types = TaskTypes::of(&types);
        Self {
            types,
            task_types,
            bodies: Bodies::default(),
            calls: RefCell::default(),
            block_ons: RefCell::default(),
        }
    }

    /// Reads all tasks of a process.
    ///
    /// The process stands still while its memory is copied, two times or more: once for a moment to find its threads, and
    /// then for each attempt. In the calling process, the calling thread is left out: it waits for a child process, which stops
    /// the others, and its tasks are at most 10,000.
    ///
    /// # Errors
    ///
    /// Fails if the process may not be read or ends meanwhile, or if this version of tokio has other fields.
    pub fn snapshot(&self, pid: u32) -> Result<Snapshot, Error> {
        let process = Process::new(pid);
        let bias = self.types.index.binary.bias(process)?;
        let memory = Memory::of(process)?;
        let reading = Reading {
            types: &self.types,
            memory: &memory,
            bias,
        };
        let mut calls = self.calls.borrow_mut();
        if calls.as_ref().is_none_or(|calls| calls.pid != pid) {
            *calls = None;
        }
        let calls = calls.get_or_insert_with(|| Calls::new(self.types.index.binary, pid));
        calls.look();
        let walker = Walker::new(&reading, &self.bodies);
        let drops = Drops::default();
        let mut standstill = Standstill::default();
        let first = process.stand_still(&mut [])?;
        standstill.add(first.took);
        // This walk reads what changes meanwhile: it only finds out what to copy.
        let outline = self.attempt(&walker, &drops, calls, process, &first)?;
        let sockets = sockets::numbers(process, &outline.tasks);
        ask_for_next_holders(&memory, &outline.tasks);
        drops.begin(&outline.tasks);
        drop(outline);
        let (mut attempt, mut moving) = (None, 0);
        while standstill.stops < MOST_STOPS {
            let mut pieces = memory.wanted();
            let still = process.stand_still(&mut pieces)?;
            memory.replace(pieces);
            standstill.add(still.took);
            standstill.bytes = memory.kept();
            moving = still.moving;
            let read = self.attempt(&walker, &drops, calls, process, &still)?;
            let is_complete = !read.lists.is_locked && !memory.has_missing();
            drops.begin(&read.tasks);
            attempt = Some(read);
            if is_complete {
                break;
            }
        }
        let Some(attempt) = attempt else {
            return Err(Error::NoProcess(pid));
        };
        let mut not_seen = not_seen(&attempt, &memory, moving);
        for library in &self.types.index.binary.libraries {
            not_seen.push(format!(
                "tasks of the tokio in the shared library {library}."
            ));
        }
        let (runtimes, mut tasks) = (attempt.runtimes, attempt.tasks);
        sockets::add_peers(process, &mut tasks, &sockets);
        let resources = graph::resources(&mut tasks);
        let circles = graph::circles(&tasks, &resources);
        Ok(Snapshot {
            pid,
            snapshots: 1,
            over: Duration::ZERO,
            runtimes: runtimes.iter().map(|runtime| runtime.flavor).collect(),
            tasks,
            resources,
            circles,
            not_seen,
            standstill,
        })
    }

    fn attempt(
        &self,
        walker: &Walker<'_, '_, '_, 'a>,
        drops: &Drops,
        calls: &mut Calls<'a>,
        process: Process,
        still: &diagnosis::threads::Standstill,
    ) -> Result<Attempt, Error> {
        let (reading, threads) = (walker.reading, &still.threads[..]);
        let (runtimes, contexts) = runtime::runtimes(reading, threads)?;
        let mut lists = runtime::tasks(reading, &runtimes, process)?;
        // Lists of tasks that futures poll, and finished tasks whose results they have, with the runtimes of these futures.
        let mut finished: Vec<(Value, usize)> = Vec::new();
        let mut local_lists: Vec<(Value, usize)> = Vec::new();
        for (tid, list) in runtime::local_sets(reading, threads) {
            let context = contexts.iter().find(|context| context.tid == tid);
            let runtime = context.and_then(|context| context.runtime);
            local_lists.push((list, runtime.unwrap_or_default()));
        }
        let (mut tasks, mut unseen): (Vec<Task>, usize) = (Vec::new(), 0);
        let polled = runtime::polled(reading, &contexts);
        let mut blocked_on = runtime::blocked_on(reading, &contexts);
        // A task may call `block_on` within `block_in_place`.
        for (_, context) in &polled {
            if !blocked_on.iter().any(|(other, _)| other.tid == context.tid) {
                blocked_on.push((*context, false));
            }
        }
        for (context, is_certain) in blocked_on.iter().take(MOST_STACKS) {
            let thread = threads.iter().find(|thread| thread.tid == context.tid);
            let mut block_ons = self.block_ons.borrow_mut();
            let found = thread.map(|thread| block_ons.of_thread(reading, calls, thread));
            let Found {
                futures,
                unseen: places,
            } = found.unwrap_or_default();
            unseen += places.max(usize::from(*is_certain && futures.is_empty()));
            for future in futures {
                let runtime = context.runtime.unwrap_or_default();
                let told = tell::blocked(walker, &self.task_types, drops, future, runtime);
                local_lists.extend(told.lists.into_iter().map(|list| (list, runtime)));
                finished.extend(told.finished.into_iter().map(|task| (task, runtime)));
                tasks.push(told.task);
            }
        }
        unseen += blocked_on.len().saturating_sub(MOST_STACKS);
        let (mut next, mut known) = (0, HashSet::new());
        loop {
            for (list, runtime) in local_lists.drain(..) {
                if known.insert(list.address) {
                    lists.add(reading, list, runtime)?;
                }
            }
            let Some(listed) = lists.tasks.get(next) else {
                break;
            };
            next += 1;
            let told = tell::task(walker, &self.task_types, drops, *listed);
            let (mut task, runtime) = (told.task, listed.runtime);
            local_lists.extend(told.lists.into_iter().map(|list| (list, runtime)));
            finished.extend(told.finished.into_iter().map(|task| (task, runtime)));
            if task.state == State::Ready
                && let Some(runtime) = runtimes.get(runtime)
            {
                task.ready_for = runtime::ready_for(reading, listed.header, runtime, still.began);
            }
            if task.state == State::Running {
                // Copies of tokio count their tasks each.
                let copy = runtimes.get(runtime).map(|runtime| runtime.copy);
                let is_own = |(id, context): &&(u64, Context)| {
                    *id == task.id && copy.is_none_or(|copy| context.copy == copy)
                };
                task.thread = polled.iter().find(is_own).map(|(_, context)| context.tid);
                let thread = threads
                    .iter()
                    .find(|thread| Some(thread.tid) == task.thread);
                if let Some(thread) = thread {
                    task.frames = calls.of_task(reading.memory, thread, reading.bias);
                }
                if task.frames.is_empty() {
                    task.not_seen.push("the stack of its thread".to_owned());
                }
            }
            tasks.push(task);
        }
        let mut known: HashSet<u64> = tasks.iter().map(|task| task.address).collect();
        for (header, runtime) in finished {
            if known.insert(header.address) {
                let listed = Listed { header, runtime };
                tasks.push(tell::task(walker, &self.task_types, drops, listed).task);
            }
        }
        Ok(Attempt {
            runtimes,
            lists,
            tasks,
            unseen,
        })
    }
}

/// Asks for all memory of the tasks that wait for what others hold or wait for, too. By the time of the copy, one of them may
/// hold it, and whether it does can only be said if all of its memory is known.
fn ask_for_next_holders(memory: &Memory, tasks: &[Task]) {
    let mut concerned: HashMap<u64, usize> = HashMap::new();
    for task in tasks {
        let waits = task.waits.iter().filter_map(|wait| wait.address);
        for address in waits.chain(task.holds.iter().map(|hold| hold.address)) {
            *concerned.entry(address).or_default() += 1;
        }
    }
    for task in tasks {
        let mut waits = task.waits.iter().filter_map(|wait| wait.address);
        if waits.any(|address| concerned.get(&address).is_some_and(|tasks| *tasks > 1)) {
            for range in &task.memory {
                if memory.is_half_full() {
                    return;
                }
                memory.ask(range);
            }
        }
    }
}

/// One walk over all tasks.
struct Attempt {
    runtimes: Vec<Runtime>,
    lists: Lists,
    tasks: Vec<Task>,
    /// Number of futures in `block_on` that were not found.
    unseen: usize,
}

impl Standstill {
    fn add(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
        self.stops += 1;
    }
}

/// Says what a snapshot does not show.
fn not_seen(attempt: &Attempt, memory: &Memory, moving: usize) -> Vec<String> {
    let Attempt { lists, tasks, .. } = attempt;
    let mut not_seen = Vec::new();
    let block_on = "in `block_on`, such as that of `main`, and tasks of a `LocalSet` there: the program does not say where on the stack";
    match attempt.unseen {
        0 => {}
        1 => not_seen.push(format!("the future of 1 thread {block_on} it lies.")),
        unseen => not_seen.push(format!(
            "the futures of {unseen} threads {block_on} they lie."
        )),
    }
    if attempt.runtimes.is_empty() && tasks.is_empty() {
        not_seen.push("any task: no thread of the process is in a runtime of tokio.".to_owned());
    }
    let running = tasks.iter().filter(|task| task.state == State::Running);
    match running.count() {
        0 => {}
        1 => not_seen.push("what 1 running task holds.".to_owned()),
        running => not_seen.push(format!("what {running} running tasks hold.")),
    }
    if lists.is_locked {
        not_seen.push("all tasks: a list was being changed at each of several looks.".to_owned());
    }
    if lists.is_cut {
        not_seen.push(format!("tasks beyond the first {}.", lists.most));
    }
    if memory.is_full() {
        let mib = memory.kept() >> 20;
        not_seen.push(format!("tasks in memory beyond the first {mib} MiB."));
    } else if memory.has_missing() {
        not_seen.push("parts of tasks that began or moved on between several looks.".to_owned());
    }
    if moving > 0 {
        not_seen.push(format!(
            "what {moving} threads changed meanwhile, which did not stop."
        ));
    }
    not_seen
}
